from triax.records.questions import Question, Step


def test_what_a_data_set_does_not_say_is_empty():
    question = Question("q", "Who?")
    assert question.answers == question.gold_document_ids == question.steps == ()
    assert question.gold_triplets == question.gold_query_triplets == question.unmatched_gold == ()
    assert question.kind == ""


def test_a_step_may_have_no_document():
    assert Step("When was #1 born?", "1911").document_id is None


def test_questions_can_be_keys():
    assert len({Question("q", "Who?", ("x",)), Question("q", "Who?", ("x",))}) == 1
