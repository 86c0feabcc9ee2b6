"""Output for people: messages, progress and previews."""
