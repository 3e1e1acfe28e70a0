package cluster

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// Names of the certificates of a kubelet: its client certificate and its serving certificate.
const (
	CertificateKubelet       = "kubelet"
	CertificateKubeletServer = "kubelet-server"
)

// Certificate is one of the cluster's certificates on a machine.
type Certificate struct {
	Host    string `json:"host"`
	Name    string `json:"name"` // kubelet, kubelet-server, apiserver, etcd/server, admin.conf …
	Subject string `json:"subject,omitempty"`
	// Issuer is the common name of the authority that signed it.
	Issuer string `json:"issuer,omitempty"`
	// SelfSigned means that the kubelet itself signed its serving certificate, so that it can't be verified.
	SelfSigned bool      `json:"selfSigned,omitempty"`
	CA         bool      `json:"ca,omitempty"`
	Expires    time.Time `json:"expires"`
	// Days left, rounded down; negative if it has expired.
	Days    int  `json:"days"`
	Expired bool `json:"expired,omitempty"`
	left    time.Duration
	// Error is the reason if the file could not be read as a certificate.
	Error string `json:"error,omitempty"`
}

// Left returns for people how long it is still valid: in days, or in hours or minutes on its last day.
func (c *Certificate) Left() string {
	switch {
	case c.Expired:
		return "EXPIRED"
	case c.Days > 0 || c.left == 0:
		return plural.Of(c.Days, "day")
	case c.left >= time.Hour:
		return plural.Of(int(c.left.Hours()), "hour")
	}
	return plural.Of(int(c.left.Minutes()), "minute")
}

func newCertificate(host, name string, data []byte, now time.Time) Certificate {
	c := Certificate{Host: host, Name: name}
	block, _ := pem.Decode(data)
	if block == nil {
		c.Error = "no PEM certificate"
		return c
	}
	x, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		c.Error = err.Error()
		return c
	}
	left := x.NotAfter.Sub(now)
	c.Subject, c.Issuer, c.CA, c.Expires = x.Subject.CommonName, x.Issuer.CommonName, x.IsCA, x.NotAfter.UTC()
	c.Days, c.Expired, c.left = int(left.Hours()/24), left < 0, left
	c.SelfSigned = name == CertificateKubeletServer && strings.Contains(c.Issuer, "-ca@") // the kubelet's own authority, NAME-ca@TIME
	return c
}
