"""The failure matrix: known faults on a real stack, and which alerts they must and must not bring."""
