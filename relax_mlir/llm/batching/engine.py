"""Answers many requests at once: a thread runs a step of the decoder after the other.

Any thread may submit, cancel and read: `worker.py` has the thread that steps.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.batch import Batch
from relax_mlir.llm.batching.loading import load_batch
from relax_mlir.llm.batching.metrics import Metrics
from relax_mlir.llm.batching.pages import Pages
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.batching.scheduler import Scheduler
from relax_mlir.llm.batching.ticket import Ticket
from relax_mlir.llm.batching.worker import Worker
from relax_mlir.llm.generation.answer import Answer
from relax_mlir.llm.generation.context_shift import check_keep
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.modules.kv_cache import PAGE

MAX_SEQUENCES = 64
STEP_TOKENS = 256
MAX_WAITING = 1024


class Engine:
    """Runs requests on the pages of a batch; `load` makes one.

    Steps have up to `max_sequences` sequences and `step_tokens` tokens; up to `max_waiting`
    requests wait. `model` has the tokenizer, the chat template and the configuration.

    Raises UsageError if an argument is out of range.
    """

    def __init__(
        self,
        model: TextModel,
        batch: Batch,
        max_sequences: int = MAX_SEQUENCES,
        step_tokens: int = STEP_TOKENS,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self.model = model
        self.capacity = min(model.context, batch.pages * PAGE)
        self._pages = batch.pages
        scheduler = Scheduler(Pages(batch.pages), max_sequences, step_tokens)
        self._worker = Worker(batch, scheduler, max_waiting, self.capacity)

    @classmethod
    def load(
        cls,
        model: str = "smollm2",
        *,
        weights: str | None = None,
        threads: int | None = None,
        pages: int | None = None,
        max_sequences: int = MAX_SEQUENCES,
        step_tokens: int = STEP_TOKENS,
        max_waiting: int = MAX_WAITING,
        activations: str = "int8",
        cache: str | None = None,
        context: int | None = None,
        use_cache: bool = True,
        lora: str | None = None,
        adapters: Mapping[str, str] = MappingProxyType({}),
        target: str = "native",
        opt_level: int = 3,
    ) -> "Engine":
        """Opens a model and compiles its decoder for batches.

        Args:
            model: a packaged name, a GGUF file, or a Hugging Face folder.
            weights: the storage type of weights, as of `relax_mlir.llm.load`; "native" if None.
            threads: threads of a step; by default all CPUs of the process.
            pages: pages of 16 tokens for all sequences together; by default as many as
                `max_sequences` of the longest context need, in a quarter of the free memory.
            max_sequences: sequences that run at once.
            step_tokens: the most tokens of a step: longer prompts take several.
            max_waiting: requests that may wait; more are refused.
            activations: as of `relax_mlir.llm.load`.
            cache: the type of the pages' elements, as of `relax_mlir.llm.load`.
            context: the maximum length of a sequence; by default that of the model.
            use_cache: whether the disk cache is read and written.
            lora: the folder of an adapter, as of `relax_mlir.llm.load`.
            adapters: folders of adapters by names, of which each request may choose one.
            target: the machine to compile for; pages are in memory of its device, if it has one.
            opt_level: as of `relax_mlir.llm.load`.

        Raises UsageError, ModelError and CompileError as `relax_mlir.llm.load` does.
        """
        text, batch = load_batch(
            model,
            "native" if weights is None else weights,
            threads,
            pages,
            max_sequences,
            activations,
            cache,
            context,
            use_cache,
            lora,
            adapters,
            target,
            opt_level,
        )
        return cls(text, batch, max_sequences, step_tokens, max_waiting)

    def submit(self, request: Request) -> Ticket:
        """Takes a request; its ticket has the answer, event by event.

        Raises UsageError if the request can never run, and Busy if too many wait.
        """
        ticket = self._ticket(request)
        if (event := ticket.ended()) is not None:
            ticket.send(event)
        else:
            self._worker.add(ticket)
        return ticket

    def metrics(self) -> Metrics:
        """The present state, and counts since the start."""
        return self._worker.metrics()

    @property
    def is_working(self) -> bool:
        """Whether it takes requests: false once it is closed, or a bug has ended its thread."""
        return self._worker.is_working

    def close(self, drain: bool = True, timeout: float | None = None) -> None:
        """Ends the engine: with `drain` once all requests are answered, or after `timeout` seconds.

        New requests are refused at once. Those that are not answered end with an error.
        """
        self._worker.close(drain, timeout)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *error: object) -> None:
        self.close(drain=False)

    def _ticket(self, request: Request) -> Ticket:
        """A ticket for a request; raises UsageError if it can never run."""
        prompt = [int(token) for token in request.prompt]
        if not prompt:
            raise UsageError("the prompt has no tokens; expects one or more")
        if len(prompt) > self.capacity:
            raise UsageError(
                f"the prompt has {len(prompt)} tokens; {self.capacity} fit, in a context of "
                f"{self.model.context} and {self._pages} pages of {PAGE}"
            )
        size = self.model.config.vocab_size
        if wrong := [token for token in prompt if not 0 <= token < size]:
            raise UsageError(f"token {wrong[0]} is not in the vocabulary of {size} tokens")
        if request.pictures:
            self.model.check_reads_images()
        self.model.check(request.sampling)
        if request.max_tokens < 0:
            raise UsageError(f"max_tokens is {request.max_tokens}; expects an integer >= 0")
        if request.logprobs is not None and not 0 <= request.logprobs <= size:
            raise UsageError(f"logprobs is {request.logprobs}; expects an integer from 0 to {size}")
        if request.keep is not None:
            check_keep(request.keep, self.capacity, bool(request.pictures))
        seed = request.sampling.seed if request.seed is None else request.seed
        answer = Answer(
            prompt,
            self.model.tokenizer,
            replace(request.sampling, seed=seed),
            self.model.config.eos_ids,
            self.capacity if request.keep is None else None,
            request.max_tokens,
            request.stop,
            request.grammar,
        )
        return Ticket(
            request, answer, self._worker.cancel, self.model.adapter_index(request.adapter)
        )
