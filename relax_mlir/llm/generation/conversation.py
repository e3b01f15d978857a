"""A conversation with a model: its messages, and the part of them that the model sees.

When the context is full, the oldest questions and answers are omitted, so many that a quarter of
the context is free for the next answer. The caches of the rest are recomputed then; omitting fewer
would recompute them in every turn.
"""

from collections.abc import Sequence
from typing import Any

from relax_mlir.errors import UsageError
from relax_mlir.llm.generation.generation import Generation
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.tokenization.chat import Message
from relax_mlir.llm.tokenization.content import asked_of
from relax_mlir.llm.vision.images import ImageSource, read_image

ANSWER_SHARE = 4
"""The reciprocal of the answer's share of the context, once questions are omitted."""


class Conversation:
    """Questions to a model and its answers, on one session.

    `messages` are all messages, the `system` message first; the model sees them without the first
    `left_out` questions and answers. Raises UsageError if the model has no chat template, or no
    such `adapter`.
    """

    def __init__(
        self, model: LanguageModel, system: str | None = None, adapter: str | None = None
    ) -> None:
        if model.chat is None:
            raise UsageError("a conversation needs a chat template, which the model has not")
        self.model = model
        self.system = system
        self.messages: list[Message] = []
        self.left_out = 0
        self._images: list[ImageSource] = []  # of all messages, in their order
        self._session = model.session(adapter=adapter)
        self.reset()

    def reset(self) -> None:
        """Removes all messages but the system message."""
        self.messages = [] if self.system is None else [_message("system", self.system)]
        self.left_out = 0
        self._images = []

    def ask(
        self,
        question: str,
        max_tokens: int | None = 256,
        images: Sequence[ImageSource] = (),
        **sampling: Any,
    ) -> Generation:
        """The answer to a question, to be iterated over; pass its text to `answered` afterwards.

        `images`, which the question is on, and `sampling` are as for `LanguageModel.generate`;
        with images in sight, answers end with the context, whatever `keep` is. Raises UsageError,
        with the conversation as it was, if the question alone is too long for the context.
        """
        if images:
            self.model.check_reads_images()
        asked = [*self.messages, asked_of(question, len(images))]
        all_images = [*self._images, *map(read_image, images)]
        left_out = self._left_out(asked, all_images, max_tokens)
        seen = self._seen(asked, left_out)
        shown = _last(all_images, seen)
        if shown:  # rows of images have positions in the prompt, which may lose no tokens
            sampling["keep"] = None
        answer = self.model.generate(
            seen,
            max_tokens=max_tokens,
            session=self._session,
            images=shown,
            **sampling,
        )
        self.messages, self.left_out, self._images = asked, left_out, all_images
        return answer

    def answered(self, text: str) -> None:
        """Adds the text of the answer to the last question."""
        self.messages.append(_message("assistant", text))

    def undo(self) -> bool:
        """Takes back the last question and its answer; False if there is none."""
        questions = [i for i, message in enumerate(self.messages) if message["role"] == "user"]
        if not questions:
            return False
        del self.messages[questions[-1] :]
        del self._images[_count_images(self.messages) :]
        self.left_out = 0  # computed anew for the next question
        return True

    def _left_out(
        self, messages: Sequence[Message], images: Sequence[ImageSource], max_tokens: int | None
    ) -> int:
        """The count of questions to omit so that the answer to the last one fits."""
        context, left_out = self._session.capacity, self.left_out
        questions = sum(message["role"] == "user" for message in messages)
        wanted = context // ANSWER_SHARE
        if max_tokens is not None:
            wanted = min(wanted, max_tokens)
        length = self._length(messages, images, left_out)
        if length + wanted > context:
            wanted = context // ANSWER_SHARE
        while length + wanted > context and left_out + 1 < questions:
            left_out += 1
            length = self._length(messages, images, left_out)
        if length > context:
            raise UsageError(
                f"the question takes {length} tokens, and the context has {context}; ask a shorter "
                "one, or choose a larger context"
            )
        return left_out

    def _length(
        self, messages: Sequence[Message], images: Sequence[ImageSource], left_out: int
    ) -> int:
        seen = self._seen(messages, left_out)
        return self.model.length(self.model.encode(seen), _last(images, seen))

    def _seen(self, messages: Sequence[Message], left_out: int) -> list[Message]:
        """The messages without the first questions and answers."""
        begin = 0 if self.system is None else 1
        questions = [i for i, message in enumerate(messages) if message["role"] == "user"]
        first = questions[left_out] if left_out else begin
        return [*messages[:begin], *messages[first:]]


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _count_images(messages: Sequence[Message]) -> int:
    contents = [message["content"] for message in messages if isinstance(message["content"], list)]
    return sum(part["type"] == "image" for content in contents for part in content)


def _last(images: Sequence[ImageSource], messages: Sequence[Message]) -> Sequence[ImageSource]:
    """Those of the last messages."""
    return images[len(images) - _count_images(messages) :]
