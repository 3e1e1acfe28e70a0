package kube

import (
	"net/http"
	"time"
)

// Patient wraps the transports of a cluster's configuration in a special limit for tests.
var Patient = func(c *Cluster, limit time.Duration) {
	c.Config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return patience{next, limit} }
}
