package config

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of this file describe the ClusterConfiguration of kubeadm.k8s.io/v1beta4. kubeadm publishes them only in k8s.io/kubernetes, which would
// add all of Kubernetes as a dependency. The types are copied from cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go of v1.36.3, without the comments.
// The reference is https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4. A test compares the types with the kubeadm in the
// bundle.

type kubeadmCluster struct {
	metav1.TypeMeta             `json:",inline"`
	Etcd                        kubeadmEtcd       `json:"etcd"`
	Networking                  kubeadmNetworking `json:"networking"`
	KubernetesVersion           string            `json:"kubernetesVersion"`
	ControlPlaneEndpoint        string            `json:"controlPlaneEndpoint"`
	APIServer                   kubeadmAPIServer  `json:"apiServer"`
	ControllerManager           kubeadmComponent  `json:"controllerManager"`
	Scheduler                   kubeadmComponent  `json:"scheduler"`
	DNS                         kubeadmDNS        `json:"dns"`
	Proxy                       kubeadmProxy      `json:"proxy"`
	CertificatesDir             string            `json:"certificatesDir"`
	ImageRepository             string            `json:"imageRepository"`
	FeatureGates                map[string]bool   `json:"featureGates"`
	ClusterName                 string            `json:"clusterName"`
	EncryptionAlgorithm         string            `json:"encryptionAlgorithm"`
	CertificateValidityPeriod   *metav1.Duration  `json:"certificateValidityPeriod"`
	CACertificateValidityPeriod *metav1.Duration  `json:"caCertificateValidityPeriod"`
}

type kubeadmComponent struct {
	ExtraArgs    []kubeadmArg    `json:"extraArgs"`
	ExtraVolumes []kubeadmVolume `json:"extraVolumes"`
	ExtraEnvs    []corev1.EnvVar `json:"extraEnvs"`
}

type kubeadmAPIServer struct {
	kubeadmComponent `json:",inline"`
	CertSANs         []string `json:"certSANs"`
}

type kubeadmDNS struct {
	kubeadmImage `json:",inline"`
	Disabled     bool `json:"disabled"`
}

type kubeadmProxy struct {
	Disabled bool `json:"disabled"`
}

type kubeadmImage struct {
	ImageRepository string `json:"imageRepository"`
	ImageTag        string `json:"imageTag"`
}

type kubeadmNetworking struct {
	ServiceSubnet string `json:"serviceSubnet"`
	PodSubnet     string `json:"podSubnet"`
	DNSDomain     string `json:"dnsDomain"`
}

type kubeadmEtcd struct {
	Local    *kubeadmLocalEtcd    `json:"local"`
	External *kubeadmExternalEtcd `json:"external"`
}

type kubeadmLocalEtcd struct {
	kubeadmImage   `json:",inline"`
	DataDir        string          `json:"dataDir"`
	ExtraArgs      []kubeadmArg    `json:"extraArgs"`
	ExtraEnvs      []corev1.EnvVar `json:"extraEnvs"`
	ServerCertSANs []string        `json:"serverCertSANs"`
	PeerCertSANs   []string        `json:"peerCertSANs"`
}

type kubeadmExternalEtcd struct {
	Endpoints     []string `json:"endpoints"`
	HTTPEndpoints []string `json:"httpEndpoints"`
	CAFile        string   `json:"caFile"`
	CertFile      string   `json:"certFile"`
	KeyFile       string   `json:"keyFile"`
}

type kubeadmVolume struct {
	Name      string `json:"name"`
	HostPath  string `json:"hostPath"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly"`
	PathType  string `json:"pathType"`
}

type kubeadmArg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
