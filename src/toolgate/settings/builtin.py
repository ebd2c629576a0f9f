"""What the built-in tools may reach, and what they stand on, by category."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from toolgate.settings.part import Part, Seconds, Variable, function, http_url


class Web(Part):
    """Tools that look things up."""

    search: Literal["duckduckgo", "searxng", "brave", "none"] = Field(
        default="duckduckgo",
        description="Who searches: `duckduckgo`, `searxng` at `search_url`, `brave` with a key, or "
        "`none`.",
    )
    search_url: Annotated[str, AfterValidator(http_url)] = Field(
        default="",
        description="Where it is, such as https://searx.example.com; DuckDuckGo and Brave have an "
        "address of their own.",
    )
    key_env: Variable = Field(
        default="", description="The environment variable that holds the key of who searches."
    )
    wikipedia_url: Annotated[str, AfterValidator(http_url)] = Field(
        default="",
        description="Another wiki than https://{language}.wikipedia.org; `{language}` is replaced.",
    )
    user_agent: str = Field(
        default="toolgate",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="What these tools call themselves to servers; many want an address for mail.",
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.search == "searxng" and not self.search_url:
            raise ValueError("name the search_url too: SearXNG has no address of its own")
        if self.search == "brave" and not self.key_env:
            raise ValueError("name the key_env too: Brave answers nobody without a key")
        return self


class Code(Part):
    """Tools that run and check code."""

    python: str = Field(
        default="",
        max_length=1_000,
        description="The Python that runs code and tests in the sandbox, such as "
        "`/opt/science/bin/python`; without one toolgate's own, with what is installed there.",
    )
    seconds: Seconds = Field(
        default=30, ge=1, le=600, strict=False, description="Seconds that code may run."
    )


class Llm(Part):
    """Tools that compare and sort texts."""

    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="",
        description="A service that makes embeddings as OpenAI's does, such as "
        "https://api.openai.com/v1; without one they are made here.",
    )
    model: str = Field(
        default="text-embedding-3-small",
        min_length=1,
        max_length=200,
        description="Its model. What another one made is not compared with what this one makes.",
    )
    key_env: Variable = Field(
        default="", description="The environment variable that holds the service's key."
    )


class Memory(Part):
    """Tools that remember."""

    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="",
        description="A service that remembers as SomaBrain does (`/remember`, `/recall`, "
        "`/delete`); without one memories are in the store.",
    )
    key_env: Variable = Field(
        default="", description="The environment variable that holds the service's key."
    )


class Subordinate(Part):
    """An agent that other agents hand tasks to: a service, or a function in this process."""

    url: Annotated[str, AfterValidator(http_url)] = Field(
        default="", description="Where its tasks are sent to, each by a POST."
    )
    key_env: Variable = Field(
        default="", description="The environment variable that holds the service's key."
    )
    callback: Annotated[str, AfterValidator(function)] = Field(
        default="", description="Instead of a url: a function of one's own, `module:function`."
    )

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if bool(self.url) == bool(self.callback):
            raise ValueError("write either a url or a callback")
        return self


class Peer(Part):
    """An agent that speaks A2A and wants a key, or is at a private address."""

    url: Annotated[str, AfterValidator(http_url)] = Field(
        description="Its address, as agents give it."
    )
    key_env: Variable = Field(
        default="", description="The environment variable that holds the key it wants."
    )


def _named(given: Mapping[str, Subordinate]) -> Mapping[str, Subordinate]:
    for name in given:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", name):
            raise ValueError(f"{name[:60]!r} names no agent; use small letters, digits, _ and -")
    return given


class Agent(Part):
    """Tools that reach people and other agents."""

    notify_url: Annotated[str, AfterValidator(http_url)] = Field(
        default="",
        description="Where responses and notifications are sent to, each by a signed POST.",
    )
    notify_secret_env: Variable = Field(
        default="TOOLGATE_NOTIFY_SECRET",
        description="The environment variable that holds the secret they are signed by.",
    )
    console: bool = Field(
        default=False,
        description="Whether responses and notifications are written to the terminal too.",
    )
    subordinates: Annotated[Mapping[str, Subordinate], AfterValidator(_named)] = Field(
        default_factory=dict, description="Agents that tasks can be handed to, by name."
    )
    peers: Mapping[str, Peer] = Field(
        default_factory=dict, description="Agents that speak A2A and want a key, by name."
    )
    depth: int = Field(
        default=4, ge=1, le=16, description="How often a task may be handed on from agent to agent."
    )
    seconds: Seconds = Field(
        default=60, ge=1, le=3_600, strict=False, description="Seconds that another agent has."
    )
    scheduler: bool = Field(
        default=True, description="Whether this process runs what agents have scheduled."
    )
