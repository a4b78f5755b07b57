"""An errand for the lab with Python alone: lists, pages, adds and orders. Needs PETSTORE_URL and PETSTORE_KEY."""
import http.client
import json
import os
import random
import re
import time
import uuid
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

server = http.client.HTTPConnection(urlsplit(os.environ["PETSTORE_URL"]).netloc, timeout=15)
TRIES = 8


def told(value):
    """Seconds that a Retry-After tells."""
    return float(value) if value.isdigit() else parsedate_to_datetime(value).timestamp() - time.time()


def ask(method, path, body=None):
    """Waits as it is told, and otherwise longer each time; the key of a POST stays for all its tries."""
    headers = {"Authorization": "Bearer " + os.environ["PETSTORE_KEY"]}
    if method == "POST":
        headers |= {"Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
    for tries in range(1, TRIES + 1):
        wait = 0.1 * 2**tries * random.uniform(0.5, 1)
        try:
            server.request(method, path, body and json.dumps(body), headers)
            reply = server.getresponse()
            text = reply.read()
            if reply.status < 500 and reply.status != 429:
                return reply, json.loads(text)
            if reply.headers["Retry-After"]:
                wait = told(reply.headers["Retry-After"])
        except (OSError, http.client.HTTPException):
            server.close()  # no reply, or not all of it: the next request opens another connection
        time.sleep(wait)
    raise RuntimeError(f"{method} {path}: given up")


def list_all():
    path = "/v1/pets?limit=10"
    while path:
        reply, _ = ask("GET", path)
        found = re.search('<([^>]+)>; rel="next"', reply.headers["Link"] or "")
        path = found and found[1]


for number in range(1, 6):
    list_all()
    _, pet = ask("POST", "/v1/pets", {"name": f"Rex {number}", "categoryId": 1})
    ask("POST", "/v1/store/orders", {"petId": pet["id"]})
ask("POST", "/v1/store/orders", {"petId": 2**53 - 1})  # there is none: asking again would not help
list_all()
