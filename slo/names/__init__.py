"""Every metric, recorded series, alert and label that Inferwatch publishes, one file a domain."""
