package doctor

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/ui/plural"
)

func certificates(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, cert := range c.Look.Status.Certificates {
		var f Finding
		switch {
		case cert.Error != "":
			f = warning(cert.Host, "look at the file on the machine; paictl cluster up makes those that are missing", "the certificate %s can't be read: %s", cert.Name, cert.Error)
		case cert.Expired:
			f = problem(cert.Host, renewal(&cert), "the certificate %s has expired", cert.Name)
		case cert.Days < certificateProblem:
			f = problem(cert.Host, renewal(&cert), "the certificate %s expires in %s", cert.Name, cert.Left())
		case cert.Days < certificateWarning:
			f = warning(cert.Host, renewal(&cert), "the certificate %s expires in %s", cert.Name, cert.Left())
		default:
			continue
		}
		if !cert.Expires.IsZero() {
			f = f.seen(cert.Subject + " until " + cert.Expires.Format(time.RFC3339))
		}
		out = append(out, f)
	}
	return out, nil
}

// renewal describes how a certificate is renewed.
func renewal(cert *cluster.Certificate) string {
	switch {
	case cert.CA:
		return "replace the authority, after a backup (paictl cluster backup): paictl cluster certs rotate-ca"
	case cert.Name == cluster.CertificateKubeletServer && cert.SelfSigned:
		return "paictl cluster up: the cluster then signs it, and the kubelet renews it"
	case cert.Name == cluster.CertificateKubeletServer:
		return "see what kubectl get csr says of the machine's requests, and kubectl -n kube-system logs deployment/pai-csr-approver; then, on the machine: systemctl restart kubelet"
	case cert.Name == cluster.CertificateKubelet:
		return "on the machine: systemctl restart kubelet; it then requests a new one, which kubectl get csr shows. If it has expired: paictl node remove, then paictl node add"
	}
	return "on the machine: systemctl start paictl-certificates.service, and journalctl -u paictl-certificates if that doesn't help; kubeadm certs renew all does it by hand"
}

func certificateRenewal(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, host := range c.Look.Status.Renewal.Off {
		out = append(out, warning(host, "paictl cluster up --limit "+host+" switches it on again", "its certificates aren't renewed automatically"))
	}
	return out, nil
}

// shortLived is the lifetime below which a client's certificate isn't meant to be kept.
const shortLived = 45 * 24 * time.Hour

func kubeconfigCertificate(_ context.Context, c *Cluster) ([]Finding, error) {
	cert, found := clientCertificate(c.Kube)
	if !found {
		return skip("the kubeconfig has no client certificate"), nil
	}
	if cert.NotAfter.Sub(cert.NotBefore) < shortLived {
		return skip("its certificate is short-lived by design; its issuer renews it"), nil
	}
	left := cert.NotAfter.Sub(c.Now())
	if left > certificateWarning*24*time.Hour {
		return nil, nil
	}
	f := warning("", "get a new one: paictl cluster kubeconfig -p DIR", "the certificate of context %s expires in %s", c.Kube.Context, plural.Of(int(left.Hours()/24), "day"))
	if left < certificateProblem*24*time.Hour {
		f.Verdict = Problem
	}
	return []Finding{f.seen("until " + cert.NotAfter.UTC().Format(time.RFC3339))}, nil
}
