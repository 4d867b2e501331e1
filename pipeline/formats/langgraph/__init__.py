"""Threads of LangGraph graphs kept in our store: one run a thread."""
