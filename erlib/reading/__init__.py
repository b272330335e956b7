"""What do classifiers make of a text, or of a corpus? What the explorer shows, without a page."""
