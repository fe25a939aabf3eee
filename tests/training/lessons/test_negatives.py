from triax.training.lessons.negatives import add_nearest_wrong
from triax.training.lessons.slots import Passage, SlotLesson

RIGHT = Passage("Vertigo", "Vertigo is a film directed by Alfred Hitchcock.")
NEAR = Passage("Vertigo (song)", "Vertigo is a song by a band.")
ALSO = Passage("Vertigo (remake)", "Vertigo was directed by Alfred Hitchcock too.")
FAR = Passage("Oslo", "Oslo is a city.")
OTHERS = [Passage(f"Town {n}", f"Place number {n}.") for n in range(5)]


def test_the_nearest_without_an_answer_are_added_in_order():
    lesson = SlotLesson("1", "x", "Vertigo | director | ?", ("Alfred Hitchcock",), (RIGHT,))
    (found,) = add_nearest_wrong([lesson], [RIGHT, NEAR, ALSO, FAR, *OTHERS], count=1)
    assert found.wrong == (NEAR,)
    assert found.answered == (RIGHT,)


def test_what_a_data_set_gives_stays_first():
    lesson = SlotLesson("1", "x", "Vertigo | director | ?", ("Hitchcock",), (RIGHT,), (FAR,))
    (found,) = add_nearest_wrong([lesson], [RIGHT, NEAR, *OTHERS], count=1)
    assert found.wrong == (FAR, NEAR)


def test_lessons_without_an_answer_stay_as_they_are():
    lesson = SlotLesson("1", "x", "Vertigo | colour | ?", (), (), (RIGHT,))
    assert add_nearest_wrong([lesson], [NEAR, FAR]) == [lesson]
    assert add_nearest_wrong([], [NEAR]) == []
