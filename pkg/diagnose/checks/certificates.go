package checks

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// Minimum numbers of days until certificates expire. With fewer days left, renewal doesn't work. A kubelet renews its certificates when at most a
// tenth of their lifetime is left, which is 36 days of a year. paictl's timer renews the certificates of the control plane 60 days before they
// expire. The alerts CertificateExpires and CertificateExpiresSoon have the same limits.
const (
	CertificateWarning = 30
	CertificateProblem = 7
)

// Names of the certificates of a kubelet: its client certificate and its serving certificate.
const (
	CertificateKubelet       = "kubelet"
	CertificateKubeletServer = "kubelet-server"
)

// Certificate is a certificate on a machine.
type Certificate struct {
	Host    string `json:"host"`
	Name    string `json:"name"` // kubelet, kubelet-server, apiserver, etcd/server, admin.conf …
	Subject string `json:"subject,omitempty"`
	// Issuer is the common name of the CA that signed the certificate.
	Issuer string `json:"issuer,omitempty"`
	// SelfSigned means that the kubelet signed its own serving certificate. Such a certificate can't be verified.
	SelfSigned bool      `json:"selfSigned,omitempty"`
	CA         bool      `json:"ca,omitempty"`
	Expires    time.Time `json:"expires"`
	// Days is the number of days until the certificate expires, rounded down. It is negative if the certificate has expired.
	Days    int  `json:"days"`
	Expired bool `json:"expired,omitempty"`
	left    time.Duration
	// Error is the reason why the file could not be read as a certificate, or "".
	Error string `json:"error,omitempty"`
}

// ReadCertificate parses the PEM file of a certificate.
func ReadCertificate(host, name string, data []byte, now time.Time) Certificate {
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
	c = *NewCertificate(name, x.NotAfter, now)
	c.Host, c.Subject, c.Issuer, c.CA = host, x.Subject.CommonName, x.Issuer.CommonName, x.IsCA
	c.SelfSigned = name == CertificateKubeletServer && strings.Contains(c.Issuer, "-ca@") // the kubelet's own CA, NAME-ca@TIME
	return c
}

// NewCertificate returns a certificate with only a name and an expiry.
func NewCertificate(name string, expires, now time.Time) *Certificate {
	left := expires.Sub(now)
	return &Certificate{Name: name, Expires: expires.UTC(), Days: int(left.Hours() / 24), Expired: left <= 0, left: left}
}

// Left returns the remaining validity as text: in days, or in hours or minutes on the last day.
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

// Check returns a finding if the certificate can't be read or expires too soon, and otherwise nil. The name may be empty.
func (c *Certificate) Check() *Finding {
	called := "the certificate " + c.Name
	if c.Name == "" {
		called = "a certificate"
	}
	f := problem("certificates", c.remedy(), "%s expires in %s", called, c.Left())
	switch {
	case c.Error != "":
		f = warning("certificates", "look at the file on the machine; paictl cluster up makes those that are missing", "%s can't be read: %s", called, c.Error)
	case c.Expired:
		f.Message = called + " has expired"
	case c.Days >= CertificateWarning:
		return nil
	case c.Days >= CertificateProblem:
		f.Severity = Warning
	}
	f.Host = c.Host
	if !c.Expires.IsZero() {
		f.Evidence = strings.TrimSpace(fmt.Sprintf("%s until %s", c.Subject, c.Expires.Format(time.RFC3339)))
	}
	return &f
}

// RenewedBy returns the program or the command that renews the certificate.
func (c *Certificate) RenewedBy() string {
	switch {
	case c.SelfSigned:
		return "paictl cluster up"
	case c.Name == CertificateKubelet || c.Name == CertificateKubeletServer:
		return "kubelet"
	case c.CA:
		return "certs rotate-ca"
	}
	return "timer on the master"
}

func (c *Certificate) remedy() string {
	switch {
	case c.Name == "":
		return "see which with: paictl cluster status -p DIR"
	case c.CA:
		return "replace the authority, after a backup (paictl cluster backup): paictl cluster certs rotate-ca"
	case c.SelfSigned:
		return "paictl cluster up: the cluster then signs it, and the kubelet renews it"
	case c.Name == CertificateKubeletServer:
		return "see what kubectl get csr says of the machine's requests, and kubectl -n kube-system logs deployment/pai-csr-approver; then, on the machine: systemctl restart kubelet"
	case c.Name == CertificateKubelet:
		return "on the machine: systemctl restart kubelet; it then requests a new one, which kubectl get csr shows. If it has expired: paictl node remove, then paictl node add"
	}
	return "on the machine: systemctl start paictl-certificates.service, and journalctl -u paictl-certificates if that doesn't help; kubeadm certs renew all does it by hand"
}
