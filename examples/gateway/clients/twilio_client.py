"""Twilio's SDK for Python through the gateway.

It has no option for its base URL, so its HTTP client rewrites the address of every
request, also those of further pages.

    GATEWAY=http://127.0.0.1:8787/twilio python3 twilio_client.py [how many messages]
"""
import os

from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from report import report

gateway = os.environ.get("GATEWAY", "http://127.0.0.1:8787/twilio")


class Through(TwilioHttpClient):
    def request(self, method, url, *args, **kwargs):
        return super().request(method, url.replace("https://api.twilio.com", gateway), *args, **kwargs)


client = Client(
    os.environ.get("TWILIO_ACCOUNT_SID", "AC00000000000000000000000000000000"),
    os.environ.get("OUTLAY_TOKEN", "none"),
    http_client=Through(timeout=30),
)

report(lambda n: client.messages.create(to="+12025550123", from_="+12025550100", body="Message " + n).sid)
