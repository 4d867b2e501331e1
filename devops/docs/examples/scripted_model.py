r"""A model of your own: it answers from a script, so that every example here runs without a key, for $0.00.

./pipeline.sh run devops/docs/examples/postcards.py:PIPELINE --param 'towns=["Oban","Nairn"]' \
    --model devops/docs/examples/scripted_model.py:MODEL
"""

from pipeline import Request, ScriptedModel


def answer(request: Request) -> str:
    """Answer by the kind of call that `label` names."""
    question = request.messages[-1].text
    if request.label == "card":
        return f"Wish you were here. {question.removeprefix('A postcard from ')} It rains."
    return f"You asked: {question[:60]}"


# Any object with check(), complete(request) and close() will do, and so will a class or function that makes one.
MODEL = ScriptedModel(answer, provider="own")
