"""Conversations: how their prompts grow, and what the prompt cache keeps of them."""
