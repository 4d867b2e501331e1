"""What good lessons say of a question, a text or an aim raises no alarm; the same said wrongly still does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pipeline.content.checks_aims import aim
from pipeline.content.checks_remarks import accepted, another_step, answers, false_results, strangers, told
from pipeline.content.checks_text import repeats, sums_of
from pipeline.content.checks_twins import twin, years
from pipeline.content.findings import Case, Fault
from pipeline.content.lesson import ExplainerCard, Item, Lesson, ModellingCard, QuestionCard, WorkedExample
from pipeline.lessons.catalogue import Catalogue
from tests.checking import Json, course, scheme_of
from tests.small_lesson import fresh

ENTRY = scheme_of(course(), 1)[0]


def item(ask: str, answer: str, **more: Any) -> Item:
    made = {"tests": ["point 1"], "working": [f"Work it out.\n{answer}"], "marks": ["gives the answer"]}
    return Item.model_validate({**made, "feedback": "It was worked out.", **more, "ask": ask, "answer": answer})


def grave(faults: Any) -> list[Fault]:
    return [fault for fault in faults if fault.severity != "W"]


@pytest.mark.parametrize(
    "text",
    [
        r"\(4\times 25=100\), so 4 is a factor of 100.",
        r"\(7^2=49\), so 7 is a square root of 49.",
        r"\(a=5\), so 3 of the sides are equal.",
        r"\(x=3\), so 2x is 6.",
    ],
)
def test_a_number_after_so_need_not_be_the_value(text: str) -> None:
    assert not list(false_results(text))


@pytest.mark.parametrize("said", ["so £13.", "so 13 cm², as asked.", "which is 13"])
def test_another_value_after_so_is_found(said: str) -> None:
    assert list(false_results(rf"\(3\times 4=12\), {said}"))


ANGLE = ("Three angles at a point are 110°, 120° and x. Find x.", "130°")
TIME = ("A bus takes 2 days. How many minutes is that?", "2880 minutes")
MASS = ("Find the total of 1.7 kg and 460 g.", "2160 g")


@pytest.mark.parametrize(
    ("asked", "feedback"),
    [
        (ANGLE, "A full turn is 360°, so the other angles are taken off."),
        (TIME, "Remember that an hour has 60 minutes, and a day has 24 of them."),
        (MASS, "Remember that there are 1,000 g in a kilogram."),
        (MASS, "Planck proposed the quantum in 1900."),
        (("A bus takes 45 minutes from 12:45 pm. When does it arrive?", "1:30 pm"), "On timetables that is 13:30."),
    ],
)
def test_numbers_that_everybody_knows_may_be_said(asked: tuple[str, str], feedback: str) -> None:
    assert not grave(strangers("c1.q1", item(*asked, feedback=feedback), (), ()))


TYPES = ("Choose a data type for the length of a car in metres.", "real")
RANGE = (
    "A program accepts 10 to 25 swimmers. Choose normal and exceptional test data.",
    "Normal: 16. Exceptional: 31.",
)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (TYPES, "The length can be 14.2 metres, so there is a decimal part."),
        (TYPES, "A length such as 14.2 has a decimal part."),
        (RANGE, "Normal test data lie inside the range: 16."),
    ],
)
def test_an_example_of_ones_own_may_have_its_number_where_nothing_is_calculated(
    asked: tuple[str, str], said: str
) -> None:
    example = WorkedExample(ask=asked[0], answer=asked[1], working=[said, "So it is chosen."])
    assert not grave(strangers("c1.e1", example, (), ()))
    assert not grave(strangers("c1.q1", item(*asked, feedback=said), (), ()))


def test_a_question_in_words_may_speak_of_what_an_explainer_teaches() -> None:
    heat = item("What separates the strands?", "heat", feedback="At 95 °C the bonds break.")
    assert grave(strangers("c1.q1", heat, (), (), {Fraction(72)}))
    assert not grave(strangers("c1.q1", heat, (), (), {Fraction(95)}))
    mass = item(*MASS, feedback="Remember that the bag is 365 g.")
    assert grave(strangers("c1.q1", mass, (), (), {Fraction(365)}))


@pytest.mark.parametrize(("text", "stands"), [("14", True), ("24", False), ("fourteen", True)])
def test_a_number_in_words_may_be_accepted_in_figures(text: str, stands: bool) -> None:
    found = grave(strangers("c1.q1", item("How old is Pablo?", "fourteen", more=[f"accept: {text}"]), (), ()))
    assert not found if stands else found


def test_a_changed_number_that_is_no_example_is_found_in_words_too() -> None:
    assert grave(strangers("c1.q1", item(*TYPES, feedback="The car is 14.2 metres long."), (), ()))
    assert grave(strangers("c1.q1", item(*MASS, feedback="A bag such as 365 g is heavy."), (), ()))


@pytest.mark.parametrize(
    ("asked", "feedback"),
    [
        (MASS, "Remember that the bag is 365 g."),
        (MASS, "The bag was sold in 1900 g."),
        (("A bus takes 45 minutes from 12:45 pm. When does it arrive?", "1:30 pm"), "On timetables that is 17:30."),
    ],
)
def test_the_same_numbers_of_other_things_are_found(asked: tuple[str, str], feedback: str) -> None:
    assert grave(strangers("c1.q1", item(*asked, feedback=feedback), (), ()))


@pytest.mark.parametrize(
    ("answer", "feedback", "stands"),
    [
        ("3 km", "The answer 3,000 m is the same length as 3 km.", True),
        ("£120", "It is not a guess: the answer £125 would be a little too high.", True),
        ("3 km", "The answer 4 km comes from adding.", False),
    ],
)
def test_feedback_may_tell_the_answer_in_another_unit(answer: str, feedback: str, stands: bool) -> None:
    wrong = [{"method": "7*8", "error": "multiplied"}]
    found = list(answers("c1.q1", item("How far is it?", answer, feedback=feedback, wrong=wrong), ()))
    assert not found if stands else found


@pytest.mark.parametrize(
    ("answer", "text", "stands"),
    [
        ("1:30 pm", "accept: 13:30", True),
        ("20 °C", "accept: 20 degrees", True),
        ("20 °C", "accept: 25 degrees", False),
        ("20 °C", "reject: 20 degrees Celsius", False),
    ],
)
def test_accepted_answers_may_be_written_in_another_way(answer: str, text: str, stands: bool) -> None:
    found = list(accepted("c1.q1", item("When or how warm is it?", answer, more=[text])))
    assert not found if stands else found


@pytest.mark.parametrize(
    ("answer", "hint", "stands"),
    [
        ("90°", "A right angle is 90°. Look for a square in the corner.", True),
        ("5 m", "A triangle of 3, 4 and 5 metres has a right angle.", True),
        ("24 cm²", "The answer is 24 cm² when you multiply.", False),
        (r"\(y^4\)", r"You should come to \(y^4\).", False),
        ("5 m", "You should get 5 m long sides.", False),
    ],
)
def test_a_hint_may_hold_a_fact(answer: str, hint: str, stands: bool) -> None:
    found = grave(told("c1.q1", item("Find this size.", answer, more=[f"hint: {hint}"])))
    assert not found if stands else found


@pytest.mark.parametrize(
    ("text", "plain", "stands"),
    [
        ("The mean of group A is higher than the mean of group B.",
         "The mean of group B is lower than the mean of group A.", True),
        ("The hypotenuse is longer than each of the other sides.",
         "Each of the other sides is shorter than the hypotenuse.", True),
        ("The more mass the trolley has, the longer its braking distance.",
         "The less mass the trolley has, the shorter its braking distance.", True),
        ("The mean of group A is higher than the mean of group B.",
         "The mean of group A is lower than the mean of group B.", False),
        ("The hypotenuse is longer than each of the other sides.",
         "The hypotenuse is shorter than each of the other sides.", False),
        ("A trolley of more mass needs a larger force.", "A trolley of more mass needs a smaller force.", False),
        ("A verb after it stays an infinitive and needs gusta: me gusta nadar.",
         "Before a verb use gusta and the infinitive: me gusta nadar.", True),
        ("Close the lid before you heat the sample.", "Close the lid after you heat the sample.", False),
        ("Read the scale, then close the lid before it.", "Read the scale, then close the lid after it.", False),
    ],
)  # fmt: skip
def test_a_plain_twin_may_turn_a_comparison_round(text: str, plain: str, stands: bool) -> None:
    lesson = Lesson.model_validate(fresh())
    card = next(card for card in lesson.cards if isinstance(card, ExplainerCard))
    card.text, card.plain = text, plain
    found = [fault for fault in twin(Case(lesson, ENTRY, course())) if "where the text says" in fault.found]
    assert not grave(found) if stands else grave(found)


def aims(subject: tuple[str, str], ref: str, outcome: str, taught: str, key_point: str = "") -> list[Fault]:
    data: Json = Catalogue().course(*subject).to_json()
    lesson = Lesson.model_validate(fresh())
    for card in lesson.cards:
        if isinstance(card, ExplainerCard):
            card.text = taught
    lesson.outcome = outcome
    lesson.key_points = [key_point] if key_point else lesson.key_points
    return grave(aim(Case(lesson, {**ENTRY, "outcome_refs": [ref]}, data)))


MATHS, PHYSICS = ("mathematics", "national_5"), ("physics", "higher")


@pytest.mark.parametrize(
    ("subject", "ref", "outcome", "taught"),
    [
        (MATHS, "geo.pythagoras", "I can find the third side of a right-angled triangle.",
         "In a right-angled triangle the squares of the short sides give the square of the third side."),
        (MATHS, "geo.circle", "I can find the distance from the centre to a chord.",
         "The distance from the centre of a circle to a chord is a side of a right-angled triangle."),
        (PHYSICS, "pw.duality", "I can explain why light frees electrons from a metal.",
         "Light of high frequency frees electrons from a metal, because each packet of it has enough energy."),
        (MATHS, "alg.quad_sketch", "I can draw a parabola with its roots and turning point.",
         "To draw a parabola, mark its roots and its turning point."),
    ],
)  # fmt: skip
def test_an_outcome_may_speak_in_the_words_of_the_explainers(
    subject: tuple[str, str], ref: str, outcome: str, taught: str
) -> None:
    assert not aims(subject, ref, outcome, taught)


def test_an_outcome_in_words_of_another_outcome_is_found() -> None:
    said = "I can find the gradient of a straight line."
    assert aims(MATHS, "geo.pythagoras", said, "The squares of two sides give the third.", said)


@pytest.mark.parametrize(("text", "stands"), [("14 or 16", True), ("14 to 16", True), ("25", False)])
def test_values_near_a_reading_are_accepted(text: str, stands: bool) -> None:
    ask = "Estimate from the line of best fit how many larvae live there."
    found = grave(strangers("c1.q1", item(ask, "15", more=[f"accept: {text}"]), (), ()))
    assert not found if stands else found
    assert grave(strangers("c1.q1", item("How many larvae live there?", "15", more=[f"accept: {text}"]), (), ()))


BEADS = ("Eight beads are 4 mm long together. Find the length of one bead in mm.", "0.5 mm")


@pytest.mark.parametrize(
    ("feedback", "stands"),
    [
        ("The eight beads share the 4 mm.", True),
        ("There are three things to look at: the row, the bead and the unit.", True),
        ("With 5 you would have forgotten a bead.", True),
        ("Test it: 5 of them are 2.5 mm long.", True),
        ("The eight beads are twenty-five short of a chain.", True),
        ("The 6 beads share the 4 mm.", False),
        ("The six beads share the 4 mm.", False),
    ],
)
def test_small_numbers_of_feedback_are_those_of_the_question(feedback: str, stands: bool) -> None:
    found = grave(strangers("c1.q1", item(*BEADS, expression="4/8", feedback=feedback), (), ()))
    assert not found if stands else found


def test_feedback_counts_the_products_of_brackets() -> None:
    brackets = (r"Expand \((x+3)(x-7)\).", r"\(x^2-4x-21\)")
    told = "There are five things to do, and then you collect."
    assert not grave(strangers("c1.q1", item(*brackets, expression="(x+3)*(x-7)", feedback=told), (), ()))


@pytest.mark.parametrize(
    ("reason", "method", "stands"),
    [
        ("added the indices", "m^(3-2)", True),
        ("added 6 % as well", "80*1.06", True),
        ("multiplied only the bottom by the root", "18/6", True),
        ("added 2 for each cycle", "2*6", True),
        ("Multiplied by the number", "42/1.2", False),
        ("You subtracted the number", "42+1.2", False),
        ("divided by the number", "42/1.2", True),
    ],
)
def test_a_method_does_what_its_reason_says(reason: str, method: str, stands: bool) -> None:
    assert bool(another_step(reason, method)) is not stands


def test_strands_of_other_bases_are_other_questions() -> None:
    one, two, same = (
        item(f"One strand is 5' {bases} 3'. Write the other, with its ends.", answer).model_dump(exclude_none=True)
        for bases, answer in (("ACGTT", "3' TGCAA 5'"), ("GTAAC", "3' CATTG 5'"), ("ACGTT", "3' TGCAA 5'"))
    )
    assert sums_of(one) == sums_of(same) != sums_of(two)


@pytest.mark.parametrize(
    ("text", "plain", "stands"),
    [
        ("Without light no photosynthesis takes place.", "Without light there is no photosynthesis.", True),
        ("It is a mistake to raise only the letter.", "Do not raise only the letter.", True),
        ("So we never notice the effects at everyday speeds.", "So we notice nothing at everyday speeds.", True),
        ("English does not do this, so many forget it.", "English does not do this.", True),
        ("English does not do this, so many forget it.", "English does this.", False),
        ("Put the subject after it. Then the verb comes before the subject.",
         "Put the subject after it. Then the verb comes after the subject.", False),
    ],
)  # fmt: skip
def test_a_plain_twin_denies_what_its_text_denies(text: str, plain: str, stands: bool) -> None:
    lesson = Lesson.model_validate(fresh())
    card = next(card for card in lesson.cards if isinstance(card, ExplainerCard))
    card.text, card.plain = text, plain
    found = [fault for fault in grave(twin(Case(lesson, ENTRY, course()))) if "where the text says" in fault.found]
    assert not found if stands else found


RISING = ("c2.text", "The Jacobite rising began in 1745. In 1746 the rising lost at Culloden.")


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        ("The Jacobite rising of 1745 ended in 1746.", True),
        ("In 1754 another war began in America.", True),
        ("The Jacobite rising began in 1754.", False),
    ],
)
def test_a_year_is_told_the_same_everywhere(said: str, stands: bool) -> None:
    found = list(years([RISING, ("c2.plain", RISING[1]), ("c4.q1.feedback", said)]))
    assert not found if stands else found


def test_a_question_may_come_to_the_number_of_another_but_not_of_an_example() -> None:
    lesson = Lesson.model_validate(fresh())
    card = next(card for card in lesson.cards if isinstance(card, QuestionCard))
    card.items = [
        item("A boat needs 8 units, 4 s, then 5 s. Calculate the time of both.", "9 s"),
        item("A cart moves for 4 s at 8 m/s, then at 5 m/s. Find its speed after that.", "9 s"),
    ]
    found = list(repeats(Case(lesson, ENTRY, course())))
    assert [fault.severity for fault in found if "other words" in fault.found] == ["W"]
    example = next(card for card in lesson.cards if isinstance(card, ModellingCard)).examples[0]
    example.ask, example.answer = "A tram waits 4 s and 5 s at 8 stops. How long is that?", "9 s"
    assert [fault for fault in grave(repeats(Case(lesson, ENTRY, course()))) if "other words" in fault.found]
