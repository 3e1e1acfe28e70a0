package doctor

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

func certificates(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, cert := range c.Inspection.Status.Certificates {
		if f := cert.Check(); f != nil {
			out = append(out, found(*f))
		}
	}
	return out, nil
}

func certificateRenewal(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, host := range c.Inspection.Status.Renewal.Off {
		out = append(out, warning(host, "paictl cluster up --limit "+host+" switches it on again", "its certificates aren't renewed automatically"))
	}
	return out, nil
}

// shortLived is the maximum lifetime of a client certificate that is intended to be replaced often.
const shortLived = 45 * 24 * time.Hour

func kubeconfigCertificate(_ context.Context, c *Cluster) ([]Finding, error) {
	cert, has := clientCertificate(c.Kube)
	if !has {
		return skip("the kubeconfig has no client certificate"), nil
	}
	if cert.NotAfter.Sub(cert.NotBefore) < shortLived {
		return skip("its certificate is short-lived by design; its issuer renews it"), nil
	}
	f := checks.NewCertificate("of context "+c.Kube.Context, cert.NotAfter, c.Now()).Check()
	if f == nil {
		return nil, nil
	}
	f.Remedy = "get a new one: paictl cluster kubeconfig -p DIR"
	return []Finding{found(*f)}, nil
}
