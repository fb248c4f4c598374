"""The reference RAG service: real parts, there to be observed; each stage can be slowed, failed or starved."""
