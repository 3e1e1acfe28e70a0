package kube

import (
	"net/http"
	"time"
)

// Patient gives the transports of a cluster's configuration a special time limit for tests.
var Patient = func(c *Cluster, limit time.Duration) {
	c.Config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return patience{next, limit} }
}
