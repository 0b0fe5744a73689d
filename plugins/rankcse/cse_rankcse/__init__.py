"""RankCSE: rankings of teachers distilled, and consistent in both views."""
