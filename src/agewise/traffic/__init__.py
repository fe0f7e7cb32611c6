"""Scheduling without learning, over millions of slots: ages, throughput, fairness."""

from agewise.traffic.result import Traffic
from agewise.traffic.run import schedule_traffic

__all__ = ["Traffic", "schedule_traffic"]
