"""The attributes that count, and how each is read; every other one is kept and ignored."""

from __future__ import annotations

from collections.abc import Mapping

#: Whole numbers, not below 0.
COUNTS = frozenset({
    "max_retries", "default_max_retries", "default_max_retry", "max_visits", "max_node_visits", "max_restarts",
    "max_parallel", "k", "join_k", "max_tokens", "manager.max_cycles", "loop_restart_signature_limit",
})  # fmt: skip
NUMBERS = frozenset({"weight", "temperature", "retry_jitter"})
FLAGS = frozenset({
    "goal_gate", "auto_status", "allow_partial", "loop_restart", "continue_on_fail", "stack.child_autostart",
})  # fmt: skip
#: Durations, or seconds without a unit.
TIMES = frozenset({"timeout", "manager.poll_interval", "duration"})
FIDELITIES = ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high")
#: One of a few words.
WORDS: Mapping[str, tuple[str, ...]] = {
    "fidelity": FIDELITIES,
    "default_fidelity": FIDELITIES,
    "context_fidelity_default": FIDELITIES,
    "reasoning_effort": ("low", "medium", "high", "xhigh", "max"),
    "join_policy": ("wait_all", "first_success", "quorum", "k_of_n"),
    "retry_policy": ("none", "standard", "aggressive", "linear", "patient"),
    "retry_backoff": ("none", "standard", "aggressive", "linear", "patient", "exponential"),
    "dialect": ("strongdm", "split"),
}

_DRAWN = frozenset({
    "label", "shape", "style", "color", "fillcolor", "fontcolor", "fontname", "fontsize", "penwidth", "tooltip",
    "width", "height", "margin", "comment", "id", "URL", "href", "target", "group", "ordering", "layout", "pos",
    "peripheries", "fixedsize", "image", "xlabel", "labelloc", "labeljust", "rank", "tailport", "headport", "dir",
    "arrowhead", "arrowtail", "arrowsize", "constraint", "minlen", "taillabel", "headlabel", "decorate", "sides",
    "rankdir", "ranksep", "nodesep", "splines", "bgcolor", "compound", "newrank", "concentrate", "dpi", "size",
    "ratio", "center", "clusterrank", "overlap", "outputorder", "pad", "orientation", "class", "name", "description",
})  # fmt: skip
#: Of the graph, of nodes, of edges: with what Graphviz draws by, and what other engines write.
GRAPH_NAMES = _DRAWN | frozenset({
    "goal", "model_stylesheet", "default_max_retries", "default_max_retry", "retry_target", "fallback_retry_target",
    "default_fidelity", "context_fidelity_default", "default_thread_id", "context_thread_default", "thread_id",
    "max_node_visits", "max_restarts", "loop_restart_signature_limit", "loop_restart_persist_keys", "fallback",
    "stack.child_dotfile", "stack.child_workdir", "tool_hooks.pre", "tool_hooks.post", "llm_model", "llm_provider",
    "reasoning_effort", "dialect", "params", "inputs", "outputs", "retry_policy", "retry_backoff", "retry_jitter",
    "max_pipeline_duration", "max_tokens", "timeout", "provenance_version", "final_output_node", "final_artifact_key",
})  # fmt: skip
NODE_NAMES = _DRAWN | frozenset({
    "type", "node_type", "prompt", "llm_prompt", "goal", "max_retries", "goal_gate", "retry_target",
    "fallback_retry_target", "fidelity", "thread_id", "timeout", "llm_model", "llm_provider", "model", "provider",
    "reasoning", "reasoning_effort", "backend", "auto_status", "allow_partial", "tool_command", "script", "command",
    "human.default_choice", "default_choice", "mode", "join_policy", "max_parallel", "k", "join_k", "error_policy",
    "manager.poll_interval", "manager.max_cycles", "manager.stop_condition", "manager.actions", "stack.child_dotfile",
    "stack.child_workdir", "stack.child_autostart", "tool_hooks.pre", "tool_hooks.post", "max_visits",
    "retry_policy", "retry_backoff", "retry_jitter", "continue_on_fail", "outputs", "inputs", "must_write",
    "max_tokens", "temperature", "duration", "is_codergen", "max_agent_turns", "agent_tool", "agent_mode", "loop_id",
    "loop_max", "loop_until_file_contains", "context_keys", "question", "question_type",
    "verdict", "quorum", "effect", "repeatable", "human.timeout", "human.input", "human.multiple", "human.required",
    "stack.child_dot_source", "parse_json", "system_prompt", "context_fidelity",
})  # fmt: skip
EDGE_NAMES = _DRAWN | frozenset({
    "condition", "weight", "fidelity", "thread_id", "loop_restart", "max_visits", "priority",
})  # fmt: skip
