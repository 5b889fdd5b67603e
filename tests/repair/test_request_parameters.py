"""The parameters of a request, and the key of a request."""

from simllm.repair.request_parameters import make_request, request_key

REQUEST = make_request("M", [{"role": "user", "content": "caf\u00e9"}])


def test_key_of_a_request_does_not_depend_on_the_order_of_its_keys():
    assert request_key(dict(reversed(REQUEST.items()))) == request_key(REQUEST)
    assert request_key(REQUEST) != request_key(REQUEST | {"model": "N"})
