"""What makes this project's own documents: the benchmark, its studies, docs/results.md."""
