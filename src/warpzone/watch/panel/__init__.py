"""The live panel: a page that follows runs by reading their files."""
