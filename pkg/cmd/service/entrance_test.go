package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/secret"
)

func TestPeopleAreToldHowTheyGetIn(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	own := &entrance{URL: "https://10.0.0.1", Fingerprint: "AB:CD"}
	assert.Equal(t, `
People sign in with: paictl login https://10.0.0.1
The authority of its certificate has the fingerprint
  AB:CD
There is no administrator yet. This link makes one, once, until 2026-03-01 12:30 UTC:
  https://10.0.0.1/first#CODE
`, own.welcome("CODE", until))
	sites := &entrance{URL: "https://gpu.example.org:8443"}
	assert.Equal(t, "\nPeople sign in with: paictl login https://gpu.example.org:8443\n", sites.welcome(secret.String(""), until))
	assert.Contains(t, (&entrance{}).welcome("CODE", until), "https://ADDRESS/first#CODE")
}

func TestPeopleAreToldWhatLeadsToAService(t *testing.T) {
	at := func(kind corev1.ServiceType, change func(*corev1.Service)) string {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "rest-server", Namespace: "pai-system"},
			Spec: corev1.ServiceSpec{Type: kind, ClusterIP: "10.96.0.7", Ports: []corev1.ServicePort{{Port: 443, NodePort: 30853}, {Port: 8444, NodePort: 30854}}}}
		if change != nil {
			change(s)
		}
		return (&entrance{URL: "https://gpu.example.org", Pages: "https://gpu.example.org:8444", Service: s}).welcome(secret.String(""), time.Time{})
	}
	assert.Contains(t, at(corev1.ServiceTypeNodePort, nil), "must lead to port 30853 of the machines with a server")
	assert.Contains(t, at(corev1.ServiceTypeNodePort, nil), "https://gpu.example.org:8444 must lead to port 30854")
	assert.Contains(t, at(corev1.ServiceTypeClusterIP, nil), "must lead to the Service rest-server of pai-system, at 10.96.0.7")
	assert.Contains(t, at(corev1.ServiceTypeLoadBalancer, nil), "has no address of a load balancer yet")
	assert.Contains(t, at(corev1.ServiceTypeLoadBalancer, func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	}), "must lead to 192.0.2.9, the load balancer")
}

func TestWhichRunsAreAboutTheServer(t *testing.T) {
	for _, yes := range [][2][]string{{}, {{"rest-server"}}, {{"grafana", "pylon"}}, {nil, {"grafana"}}} {
		assert.True(t, asksForServer(yes[0], yes[1]), "%v", yes)
	}
	for _, no := range [][2][]string{{{"grafana"}}, {nil, {"webportal"}}} {
		assert.False(t, asksForServer(no[0], no[1]), "%v", no)
	}
}
