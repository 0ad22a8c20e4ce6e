"""Runs Django's tests and writes the outcome of each to the file JUNCTOR_OUTCOMES: its state and its name."""

import os

from django.test.runner import DiscoverRunner


class Runner(DiscoverRunner):
    def run_suite(self, suite, **options):
        result = super().run_suite(suite, **options)
        failed = [test for test, _ in result.failures + result.errors] + result.unexpectedSuccesses
        # A part of a test counts as the test. The name of a class that cannot be set up has blanks.
        bad = {getattr(test, "test_case", test).id().replace(" ", "_") for test in failed}
        with open(os.environ["JUNCTOR_OUTCOMES"], "w", encoding="utf-8") as outcomes:
            outcomes.write(f"ran {result.testsRun}\n")
            outcomes.write(f"skipped {len(result.skipped) + len(result.expectedFailures)}\n")
            outcomes.writelines(f"failed {name}\n" for name in sorted(bad))
        return result
