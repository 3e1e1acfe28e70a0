package catalogue

const (
	prometheusService     = "prometheus"
	keyKubelet            = "kubelet"
	keyInsecureSkipVerify = "insecureSkipVerify"
)

// configurePrometheus makes Prometheus verify kubelets if the cluster signs their certificates after "cluster up". It reports whether it has set
// this value. It doesn't set the value if the section sets it.
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

// VerifiesKubelets reports whether Prometheus verifies kubelets because configurePrometheus has set that.
func (c *Catalogue) VerifiesKubelets() bool { return c.verifiesKubelets }

// LeaveKubeletsUnverified undoes the decision that Prometheus verifies kubelets. It is for a cluster in which kubelets still sign their own
// certificates, because "cluster up" hasn't changed that yet.
func (c *Catalogue) LeaveKubeletsUnverified() {
	if c.verifiesKubelets {
		s := c.services[prometheusService]
		s.Values = merge(s.Values, verifying(false))
	}
}
