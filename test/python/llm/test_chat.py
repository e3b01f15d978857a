"""Chat templates: the known prompt of SmolLM2, the sandbox, and every place they come from."""

import json
import re

import pytest
from tiny_models import TEMPLATE, random_weights, write_gguf, write_hf_tokenizer

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.gguf_file import GgufFile
from relax_mlir.llm.tokenization.chat import (
    ChatTemplate,
    gguf_chat_template,
    hugging_face_chat_template,
)

QUESTION = {"role": "user", "content": "What is the capital of France?"}


def test_smollm2_prompt(smollm2, golden):
    """The reference run used these 37 tokens."""
    prompt = smollm2.chat.render([QUESTION])
    ids = smollm2.tokenizer.encode(prompt, add_special_tokens=False)
    assert ids == golden["chat_tokens"].tolist()


def test_smollm2_conversation(smollm2):
    messages = [
        {"role": "system", "content": "Be brief."},
        QUESTION,
        {"role": "assistant", "content": "Paris."},
        {"role": "user", "content": "And of Spain?"},
    ]
    expected = (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
        "<|im_start|>assistant\nParis.<|im_end|>\n"
        "<|im_start|>user\nAnd of Spain?<|im_end|>\n"
    )
    assert smollm2.chat.render(messages, add_generation_prompt=False) == expected
    assert smollm2.chat.render(messages) == expected + "<|im_start|>assistant\n"


def test_what_templates_see():
    source = "{{ bos_token }}|{{ eos_token }}|{{ messages | tojson }}|{{ tools is none }}"
    template = ChatTemplate(source, "<s>", None)
    text = template.render([{"role": "user", "content": "<é>"}])
    assert text == '<s>||[{"role": "user", "content": "<é>"}]|True'
    assert re.fullmatch(r"\d{4}", ChatTemplate("{{ strftime_now('%Y') }}").render([]))
    sorted_ = "{{ messages | tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}"
    assert ChatTemplate(sorted_).render([{"role": "é", "content": "x"}]) == (
        '[{"content":"x","role":"\\u00e9"}]'
    )
    answer = (
        "{% for m in messages %}\n{% generation %}\n{% set x = m.content %}{{ x }}"
        "{{ loop.index }}\n{% endgeneration %}\n{% endfor %}{{ x is undefined }}"
    )
    assert ChatTemplate(answer).render([{"role": "user", "content": "hi"}]) == "hi1\nTrue"
    loop = (
        "{% for m in messages %}\n  {% if loop.index > 1 %}{% break %}{% endif %}\nx\n{% endfor %}"
    )
    assert ChatTemplate(loop).render([QUESTION, QUESTION]) == "x\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[5].content }}", "refuses the messages"),
        ("{{ messages[0].role + 1 }}", "refuses the messages"),
        ("{{ 1 // 0 }}", "refuses the messages"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{% for i in range(10000000) %}{% endfor %}", "too big"),
    ],
)
def test_templates_that_fail(source, message):
    with pytest.raises(ModelError, match=message):
        ChatTemplate(source).render([QUESTION])


def test_no_template_at_all():
    with pytest.raises(ModelError, match="the chat template cannot be read"):
        ChatTemplate("{% for m in %}")


def test_messages_stay_as_they_are():
    messages = [dict(QUESTION)]
    with pytest.raises(ModelError):
        ChatTemplate("{{ messages[0].update({'role': 'x'}) }}").render(messages)
    assert messages == [QUESTION]


def test_where_templates_come_from(tmp_path):
    file = GgufFile.open(write_gguf(tmp_path / "m.gguf", random_weights()))
    assert gguf_chat_template(file) == TEMPLATE
    without = write_gguf(tmp_path / "w.gguf", random_weights(), drop=("tokenizer.chat_template",))
    assert gguf_chat_template(GgufFile.open(without)) is None
    assert hugging_face_chat_template(tmp_path) is None
    write_hf_tokenizer(tmp_path)
    assert hugging_face_chat_template(tmp_path) == TEMPLATE
    named = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": named}))
    assert hugging_face_chat_template(tmp_path) == "d"
    config.write_text(json.dumps({"chat_template": named[:1]}))
    assert hugging_face_chat_template(tmp_path) is None
    config.write_text(json.dumps({"chat_template": 3}))
    with pytest.raises(ModelError, match="'chat_template' is 3; expects a string"):
        hugging_face_chat_template(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("from the file")
    assert hugging_face_chat_template(tmp_path) == "from the file"
