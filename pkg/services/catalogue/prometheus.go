package catalogue

const (
	prometheusService     = "prometheus"
	keyKubelet            = "kubelet"
	keyInsecureSkipVerify = "insecureSkipVerify"
)

// configurePrometheus enables the verification of kubelets in Prometheus if the cluster signs the kubelets' certificates after "cluster up".
// configurePrometheus returns true if it has enabled the verification. A value in the section takes precedence.
func (b *builder) configurePrometheus() bool {
	s := b.services[prometheusService]
	if s == nil || s.Upstream != nil || !s.Enabled || !b.cfg.IsManaged() || b.cfg.Kubernetes.Kubernetes.Extra.Kubelet["serverTLSBootstrap"] == false {
		return false
	}
	chart, _ := s.Chart.Values[keyKubelet].(map[string]any)
	section, _ := s.Values[keyKubelet].(map[string]any)
	if chart[keyInsecureSkipVerify] == nil || section[keyInsecureSkipVerify] != nil {
		return false
	}
	s.Values = mergeComputed(verifying(true), s.Values)
	return true
}

func verifying(verify bool) map[string]any {
	return map[string]any{keyKubelet: map[string]any{keyInsecureSkipVerify: !verify}}
}

// VerifiesKubelets reports whether configurePrometheus has enabled the verification of kubelets.
func (c *Catalogue) VerifiesKubelets() bool { return c.verifiesKubelets }

// LeaveKubeletsUnverified disables the verification that configurePrometheus has enabled. LeaveKubeletsUnverified is necessary until "cluster up" has
// replaced the kubelets' self-signed certificates.
func (c *Catalogue) LeaveKubeletsUnverified() {
	if c.verifiesKubelets {
		s := c.services[prometheusService]
		s.Values = merge(s.Values, verifying(false))
	}
}
