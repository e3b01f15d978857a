"""What a model sees of a conversation, until the context is full and from then on."""

import numpy as np
import pytest
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.errors import UsageError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.generation.conversation import Conversation

pytestmark = pytest.mark.usefixtures("llvm_turns")

SHORT = 3


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> LanguageModel:
    return load(str(write_gguf(tmp_path_factory.mktemp("said") / "tiny.gguf", random_weights())))


def turn(conversation: Conversation, question: str, max_tokens: int = SHORT) -> str:
    answer = "".join(conversation.ask(question, max_tokens=max_tokens))
    conversation.answered(answer)
    return answer


@pytest.mark.parametrize("system", [None, "1 2"])
def test_the_oldest_questions_are_left_out(tiny: LanguageModel, system: str | None) -> None:
    conversation = Conversation(tiny, system)
    head = [] if system is None else [{"role": "system", "content": system}]
    left_out = []
    for i in range(8):
        question = f"{i} 1"
        text = turn(conversation, question)
        left_out.append(conversation.left_out)
        said = conversation.messages[len(head) :]
        assert len(said) == 2 * (i + 1)
        seen = [*head, *said[2 * conversation.left_out : -1]]
        length = len(tiny.encode(seen))
        assert length + SHORT <= CONFIG.max_context
        # The answer is what a model gives that was told just this.
        assert text == "".join(tiny.generate(seen, max_tokens=SHORT))
        if i and left_out[-1] > left_out[-2]:
            assert length + CONFIG.max_context // 4 <= CONFIG.max_context
    assert left_out == sorted(left_out)
    assert left_out[-1] > 0
    assert len(np.unique(left_out)) < len(left_out)  # not in every turn
    conversation.reset()
    assert (conversation.messages, conversation.left_out) == (head, 0)


def test_a_question_that_is_too_long_changes_nothing(tiny: LanguageModel) -> None:
    conversation = Conversation(tiny)
    turn(conversation, "hello")
    before = list(conversation.messages)
    with pytest.raises(UsageError, match=r"the question takes \d+ tokens, and the context has 64"):
        conversation.ask("1 " * 80)
    assert (conversation.messages, conversation.left_out) == (before, 0)


def test_what_is_taken_back_was_never_said(tiny: LanguageModel) -> None:
    conversation = Conversation(tiny)
    assert not conversation.undo()
    turn(conversation, "hello")
    before = list(conversation.messages)
    first = turn(conversation, "1")
    assert conversation.undo()
    assert conversation.messages == before
    assert turn(conversation, "1") == first
    while conversation.undo():
        pass
    assert conversation.messages == []


def test_undo_brings_back_what_was_left_out_of_it(tiny: LanguageModel) -> None:
    conversation = Conversation(tiny)
    for i in range(6):
        turn(conversation, f"{i} 1")
    assert conversation.left_out > 1
    for _ in range(5):
        assert conversation.undo()
    turn(conversation, "1")
    assert conversation.left_out == 0
