"""Language models: what a backend implements, the formats they speak, the ones that a person has configured."""
