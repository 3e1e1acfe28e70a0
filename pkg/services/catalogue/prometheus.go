package catalogue

const (
	prometheusService     = "prometheus"
	keyKubelet            = "kubelet"
	keyInsecureSkipVerify = "insecureSkipVerify"
)

// configurePrometheus has Prometheus verify kubelets where "cluster up" has the cluster sign their certificates. It reports whether that was
// decided here, and not by the section.
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

// VerifiesKubelets reports whether Prometheus verifies kubelets since the section leaves that to paictl.
func (c *Catalogue) VerifiesKubelets() bool { return c.verifiesKubelets }

// LeaveKubeletsUnverified is for a cluster whose kubelets sign their certificates themselves still: "cluster up" hasn't moved it.
func (c *Catalogue) LeaveKubeletsUnverified() {
	if c.verifiesKubelets {
		s := c.services[prometheusService]
		s.Values = merge(s.Values, verifying(false))
	}
}
