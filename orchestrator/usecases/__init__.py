"""One module a use case: seal, certify, recover, score, verify."""
