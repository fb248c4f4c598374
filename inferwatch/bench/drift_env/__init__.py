"""What the drift benchmark runs in environments of its own: texts, embeddings, peers. Imports nothing of ours."""
