"""Text in, text out: completers, their cache and their ledger."""
