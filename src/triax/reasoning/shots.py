"""Worked examples for untrained models: fills from passages, and decompositions into relations.

They are the few-shot baselines that a trained part is held against. None is from a data set.
"""

PASSAGES_SYSTEM = (
    "Read the passages and complete the triplet with a name, a date or a few words copied from "
    "them. Write the missing part only. Answer 'not found' if the passages do not say it."
)
_BRIDGES = (
    "Passages:\n"
    "[1] Forth Bridge\nThe Forth Bridge is a cantilever railway bridge across the Firth of Forth "
    "in the east of Scotland, west of central Edinburgh. It was designed by the engineers Sir John "
    "Fowler and Sir Benjamin Baker and opened on 4 March 1890.\n"
    "[2] Tay Bridge\nThe Tay Bridge carries the railway across the Firth of Tay between Dundee and "
    "Wormit. The present bridge was designed by William Henry Barlow and opened in 1887; its "
    "predecessor collapsed in a storm in December 1879.\n\n"
)
PASSAGE_FILLS: tuple[tuple[str, str], ...] = (
    (f"{_BRIDGES}Tay Bridge | designed by | ?", "William Henry Barlow"),
    (
        "Passages:\n"
        "[1] Palermo\nPalermo is a city in southern Italy, the capital of the island of Sicily. It "
        "was founded by the Phoenicians in 734 BC.\n"
        "[2] Giuseppe Tomasi di Lampedusa\nGiuseppe Tomasi, Prince of Lampedusa, was a Sicilian "
        "writer, born in Palermo in 1896. He is known for his only novel, The Leopard, which was "
        "published in 1958, a year after his death in Rome.\n\n"
        "In which city did the writer of The Leopard die? | answer | ?",
        "Rome",
    ),
    (f"{_BRIDGES}John Fowler | place of birth | ?", "not found"),
)

RELATIONS_SYSTEM = (
    "Write what must be known to answer the question as triplets, one a line: subject | relation "
    "| ?number. Name relations shortly, such as director, father, spouse, date of birth, place of "
    "death, country of citizenship, publication date. Give each unknown its own number, and use "
    "the same number wherever the same thing is meant. Write nothing else."
)
RELATION_DECOMPOSITIONS: tuple[tuple[str, str], ...] = (
    (
        "Question: Where was the director of film Stalker (Film) born?",
        "Stalker (Film) | director | ?1\n?1 | place of birth | ?2",
    ),
    (
        "Question: Which film has the director who was born earlier, Vertigo or Ikiru?",
        "Vertigo | director | ?1\n?1 | date of birth | ?2\n"
        "Ikiru | director | ?3\n?3 | date of birth | ?4",
    ),
    (
        "Question: Who is the paternal grandmother of Emperor Commodus?",
        "Emperor Commodus | father | ?1\n?1 | mother | ?2",
    ),
    (
        "Question: Who lived longer, Clara Schumann or Fanny Hensel?",
        "Clara Schumann | date of birth | ?1\nClara Schumann | date of death | ?2\n"
        "Fanny Hensel | date of birth | ?3\nFanny Hensel | date of death | ?4",
    ),
    (
        "Question: Are the Danube and the Vistula located in the same country?",
        "Danube | country | ?1\nVistula | country | ?2",
    ),
)
