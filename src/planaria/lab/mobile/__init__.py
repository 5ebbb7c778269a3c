"""The mobile overlay measured: fairness, cost, and what an observer can learn."""
