"""The readers of protocol/*.api and the writers of what is generated from them. Standard library only."""
