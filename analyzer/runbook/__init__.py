"""The runbook: one play a finding, ``<id prefix>/<name>.md``. See README.md."""
