"""A paper that nobody wrote: attention that is guided by rationales."""
