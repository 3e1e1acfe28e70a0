package catalogue

const (
	prometheusService     = "prometheus"
	keyKubelet            = "kubelet"
	keyInsecureSkipVerify = "insecureSkipVerify"
)

// configurePrometheus makes Prometheus verify kubelets if "cluster up" makes the cluster sign their certificates. It reports whether it
// decided that, and not the section.
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

// VerifiesKubelets reports whether Prometheus verifies kubelets because paictl decided so.
func (c *Catalogue) VerifiesKubelets() bool { return c.verifiesKubelets }

// LeaveKubeletsUnverified is for a cluster whose kubelets still sign their certificates themselves, because "cluster up" hasn't
// changed that yet.
func (c *Catalogue) LeaveKubeletsUnverified() {
	if c.verifiesKubelets {
		s := c.services[prometheusService]
		s.Values = merge(s.Values, verifying(false))
	}
}
