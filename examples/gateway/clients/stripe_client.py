"""Stripe's SDK for Python through the gateway. It keeps a path prefix.

    GATEWAY=http://127.0.0.1:8787/stripe python3 stripe_client.py [how many customers]
"""
import os

import stripe

from report import report

stripe.api_base = os.environ.get("GATEWAY", "http://127.0.0.1:8787/stripe")
stripe.api_key = os.environ.get("OUTLAY_TOKEN", "sk_test_none")
stripe.max_network_retries = 2 if os.environ.get("SDK_RETRIES") else 0  # the gateway repeats

report(lambda n: stripe.Customer.create(name="Customer " + n).id)
