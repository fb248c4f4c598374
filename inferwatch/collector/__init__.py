"""The collector's configuration: what slo.yaml decides in it, what is wrong with one, who is firing."""
