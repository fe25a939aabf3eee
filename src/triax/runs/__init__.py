"""Run folders: claimed by a config, written atomically, resumed by item."""
