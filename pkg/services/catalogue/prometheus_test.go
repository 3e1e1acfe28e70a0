package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPrometheusVerifiesKubeletsWhereTheClusterSignsTheirCertificates(t *testing.T) {
	no := false
	for name, tt := range map[string]struct {
		sections string
		managed  *bool
		kubelet  map[string]any
		decided  bool
		want     any // nil: the chart's default, which doesn't verify
	}{
		"paictl's Kubernetes":             {decided: true, want: false},
		"the section says so":             {sections: "prometheus: {kubelet: {insecureSkipVerify: false}}\n", want: false},
		"the section says no":             {sections: "prometheus: {kubelet: {insecureSkipVerify: true}}\n", want: true},
		"someone else's Kubernetes":       {managed: &no},
		"kubelets are to sign their own":  {kubelet: map[string]any{"serverTLSBootstrap": false}},
		"it is off":                       {sections: "prometheus: {enabled: false}\n"},
		"another setting of the section":  {sections: "prometheus: {service: {port: 9999}}\n", decided: true, want: false},
		"another setting of the kubelets": {kubelet: map[string]any{"maxPods": 50}, decided: true, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := gpuCluster(t, 1, tt.sections)
			cfg.Kubernetes.Kubernetes.Managed, cfg.Kubernetes.Kubernetes.Extra.Kubelet = tt.managed, tt.kubelet
			c, found, err := Load(t.Context(), cfg, Options{})
			require.NoError(t, err)
			require.NoError(t, found.Err())
			value := func() any {
				kubelet, _ := c.Get(prometheusService).Values[keyKubelet].(map[string]any)
				return kubelet[keyInsecureSkipVerify]
			}
			assert.Equal(t, tt.want, value())
			assert.Equal(t, tt.decided, c.VerifiesKubelets())
			c.LeaveKubeletsUnverified()
			if tt.decided {
				tt.want = true
			}
			assert.Equal(t, tt.want, value(), "what the section says stays")
		})
	}
}
