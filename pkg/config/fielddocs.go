package config

// fieldDocs returns the descriptions of a file's fields by path. The comments in generated files, the JSON schemas and "config show" contain these
// texts. In a path, * matches any name, and [] matches any entry of a list.
func fieldDocs(file string) map[string]string {
	switch file {
	case LayoutFile:
		return layoutDocs()
	case KubernetesFile:
		return kubernetesDocs()
	case RolesFile:
		return roleDocs()
	case ServicesFile:
		return serviceDocs()
	case QuickStartSchema:
		return quickStartDocs()
	}
	return nil
}

func layoutDocs() map[string]string {
	docs := map[string]string{
		"apiVersion":              "Version of this file's format.",
		"kind":                    "Kind of this file: Layout.",
		"ssh":                     "How to reach the machines. A machine's own ssh section overrides it, field by field.",
		"machine-sku":             "Kinds of machines (SKUs): all machines with equal hardware share one.",
		"machine-sku.*.mem":       "Memory that the system manages, as a Kubernetes quantity such as 503Gi.",
		"machine-sku.*.cpu":       "Processors.",
		"machine-sku.*.cpu.vcore": "Logical processors.",
		"machine-sku.*.cpu.model": "Name of the processor.",
		"machine-sku.*.gpu":       "GPUs; absent on machines without.",
		"machine-sku.*.gpu.type":  "Model, such as NVIDIA-A100-SXM4-80GB.",
		"machine-sku.*.gpu.count": "GPUs per machine.",
		"machine-sku.*.gpu.parts": "Number of parts into which each GPU is split for jobs, which then share its time: 4. Memory and time of the jobs are not isolated from each other. " +
			"A job's gpu counts parts. Without it, a job has its GPUs exclusively.",
		"machine-sku.*.gpu.mig": "Profile of the instances (MIG) into which the hardware splits each GPU for jobs, such as 1g.10gb: as many as fit. Each has its own processors " +
			"and memory. A job's gpu counts instances.",
		"machine-sku.*.gpu.driver": "Driver version, if all machines of the SKU have the same.",
		"machine-sku.*.gpu.simulated": "The GPUs exist only in the simulation of the node agent " +
			"(quick-start's gpu: simulate).",
		"machine-sku.*.os":            "Operating system and version in one word, such as ubuntu22.04.",
		"machine-sku.*.arch":          "Processor architecture: amd64 or arm64.",
		"machine-sku.*.disks":         "Built-in disks.",
		"machine-sku.*.disks[].name":  "Kernel's name, such as nvme0n1.",
		"machine-sku.*.disks[].size":  "Size as a Kubernetes quantity.",
		"machine-sku.*.disks[].kind":  "ssd, hdd or nvme.",
		"machine-sku.*.infiniband":    "RDMA devices, such as mlx5_0.",
		"machine-sku.*.discovered":    "false if the values were not read from a machine and you must fill them in.",
		"machine-list":                "The machines, in any order.",
		"machine-list[].hostname":     "The machine's host name; also the name of its Kubernetes node.",
		"machine-list[].hostip":       "IPv4 address at which the other machines and the operator reach it.",
		"machine-list[].machine-type": "Its SKU, one of machine-sku.",
		"machine-list[].roles":        "Its roles, of k8s-role-definition.yaml: master, worker, or both.",
		"machine-list[].labels":       "Further labels of its Kubernetes node.",
		"machine-list[].taints":       "Further taints of its Kubernetes node: key=value:Effect.",
		"machine-list[].gpus-for-pods": "Indices of its GPUs, counted from 0, for ordinary pods with nvidia.com/gpu, and not for jobs: " +
			"[6, 7]. Requires Kubernetes 1.36 (see services.md).",
		"machine-list[].ssh": "How to reach it, if that differs from the others.",
	}
	for field, text := range map[string]string{
		"username":     "Login user; if empty, the user of ~/.ssh/config or the operator's own name.",
		"password":     "Login password; also used for sudo if it asks. If there is a key, it is tried first.",
		"keyfile-path": "Private key on the operator's machine; relative paths start in this folder, ~ is the home folder.",
		"secret-name":  "Name of the Kubernetes secret that holds the key, for services that log in to machines.",
		"port":         "Port of the SSH server; if empty, that of ~/.ssh/config, or 22.",
		"jump-host":    "Machine between the operator and the cluster: [user@]host[:port]; several, outermost first, separated by commas.",
		"known-hosts":  "Known_hosts file to check host keys against, instead of ~/.ssh/known_hosts.",
	} {
		docs["ssh."+field], docs["machine-list[].ssh."+field] = text, text
	}
	return docs
}

func kubernetesDocs() map[string]string {
	docs := map[string]string{
		"apiVersion":                          "Version of this file's format.",
		"kind":                                "Kind of this file: KubernetesConfiguration.",
		"kubernetes":                          "How paictl installs Kubernetes.",
		"kubernetes.managed":                  "false if paictl did not install Kubernetes (config generate --from-kubeconfig): cluster and node commands then refuse to work on the machines.",
		"kubernetes.version":                  "Release of Kubernetes. It must be the bundle's.",
		"kubernetes.cluster-name":             "Name of the cluster in certificates and in the kubeconfig.",
		"kubernetes.cluster-dns":              "The machines' DNS servers, to which cluster DNS forwards names outside the cluster.",
		"kubernetes.service-cluster-ip-range": "Addresses of services. It must not overlap the machines' network or pod-cidr.",
		"kubernetes.pod-cidr":                 "Addresses of pods: a /24 of it for each machine.",
		"kubernetes.dns-domain":               "Domain of services and pods.",
		"kubernetes.load-balance-ip":          "Address of the Kubernetes API: the first master's, or that of a load balancer in front of several masters, which all machines then use. With a master's address and several masters, api-endpoint decides.",
		"kubernetes.api-vip":                  "A free IPv4 address in the masters' network, for people and programs outside of the cluster: one of the masters whose API server is ready has it (see cluster.md). Only with api-endpoint: local.",
		"kubernetes.api-endpoint":             "How machines reach the Kubernetes API: local, each by its own proxy, which finds a master that is ready (the default with several masters); or the HOST:PORT of your load balancer.",
		"kubernetes.api-servers-port":         "Port of the Kubernetes API.",
		"kubernetes.api-server-cert-sans":     "Further names and addresses in the API server's certificate.",
		"kubernetes.etcd-data-path":           "Folder on the masters with the cluster's state. Use fast, durable disks.",
		"kubernetes.docker-registry":          "Where Kubernetes' own images come from. The bundle's are imported under this name, so nothing is pulled.",
		"kubernetes.network-plugin":           "flannel; none if you install another; or the path of a manifest (.yaml, .yml or .json) that is applied instead, relative paths start in this folder.",
		"kubernetes.metadata-address":         "closed, the default: pods can't reach the cloud's metadata service, which provides credentials of the machine (169.254.169.254 and 100.100.100.200, port 80). open: they can.",
		"kubernetes.bundle":                   "Folder with the programs and images to install (paictl bundle build); relative paths start in this folder.",
		"kubernetes.gpu-driver":               "NVIDIA's driver on machines with its GPUs (see cluster.md).",
		"kubernetes.gpu-driver.policy":        "keep, the default: a working driver stays, and paictl warns about a machine without one. install: paictl installs it with apt, and cluster down removes it again. none: paictl ignores drivers.",
		"kubernetes.gpu-driver.version":       `A branch, "535", or one release of it, "535.261.03"; if missing: the newest branch that the source has for the machine's GPUs. With policy: keep, the oldest accepted version.`,
		"kubernetes.gpu-driver.module":        "NVIDIA's kernel module: open, closed, or auto, the default: the one that the GPUs need and NVIDIA recommends for the branch.",
		"kubernetes.gpu-driver.source":        "Source of the packages: distribution, the default; nvidia, NVIDIA's repository, which must be in the machine's apt sources; bundle, those added with paictl bundle add-driver.",
		"kubernetes.extra":                    "Further settings, merged over those that paictl writes.",
	}
	for field, text := range proxyDocs() {
		docs["kubernetes."+field] = text
	}
	for field, text := range extraDocs() {
		docs["kubernetes.extra."+field] = text
	}
	return docs
}

func proxyDocs() map[string]string {
	return map[string]string{
		"proxy":          "Proxy for connections out of the cluster: only containerd, to pull images, and apt, in repairs, use it. Pods don't get it.",
		"proxy.http":     "Proxy for http:// addresses, such as http://proxy.example.org:3128; a user and password may precede the host, with % escapes.",
		"proxy.https":    "Proxy for https:// addresses, such as registries; its own address usually also begins with http://.",
		"proxy.no-proxy": "Hosts, domains (.example.org) and ranges that are reached directly. The machines, load-balance-ip, service-cluster-ip-range, pod-cidr and the cluster's names always are.",
	}
}

func extraDocs() map[string]string {
	return map[string]string{
		"kubelet":                         "Fields of kubelet's KubeletConfiguration (kubelet.config.k8s.io/v1beta1).",
		"kube-proxy":                      "Fields of KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1).",
		"containerd":                      "Sections of containerd's config.toml, version 3.",
		"kubeadm":                         "Fields of kubeadm's ClusterConfiguration (kubeadm.k8s.io/v1beta4).",
		"kubeadm-ignore-preflight-errors": "Names of kubeadm's own checks to ignore.",
		"sysctl":                          "Further kernel settings for all machines; values are text; quotes around numbers are optional.",
	}
}

func roleDocs() map[string]string {
	return map[string]string{
		"apiVersion":                "Version of this file's format.",
		"kind":                      "Kind of this file: RoleDefinition.",
		"k8s-role":                  "Roles by name. layout.yaml assigns each machine one or more of them.",
		"k8s-role.*.description":    "Purpose of the role.",
		"k8s-role.*.component-list": "Components of the control plane that run on the machine: etcd, apiserver, controller-manager, scheduler; all four or none.",
		"k8s-role.*.labels":         "Labels of the machine's Kubernetes node.",
		"k8s-role.*.taints":         "Taints of the node: key=value:Effect. They do not apply if the machine also has a role with workloads.",
		"k8s-role.*.workloads":      "Whether ordinary pods, such as jobs, may run on the machine.",
	}
}

func serviceDocs() map[string]string {
	return map[string]string{
		"apiVersion":                          "Version of this file's format.",
		"kind":                                "Kind of this file: ServicesConfiguration.",
		"cluster":                             "Settings that all services share.",
		"cluster.common":                      "Facts about the cluster as a whole.",
		"cluster.common.cluster-id":           "Name of this cluster in prompts, alerts and metrics.",
		"cluster.common.data-path":            "Folder on the machines where services store their data.",
		"cluster.docker-registry":             "Where the images of the platform's services come from.",
		"cluster.docker-registry.domain":      "Registry, such as docker.io or registry.example.org:5000.",
		"cluster.docker-registry.namespace":   "Project in the registry.",
		"cluster.docker-registry.docker-tag":  "Tag of the images: the release of the platform.",
		"cluster.docker-registry.mirror":      "Registry, optionally with a path, that mirrors upstream images; it replaces the registry in their names. If missing, they come from their original registries.",
		"cluster.docker-registry.username":    "Login for a private registry; with password, or neither.",
		"cluster.docker-registry.password":    "Password for username.",
		"cluster.docker-registry.secret-name": "Name of the Kubernetes secret made of the login.",
	}
}

func quickStartDocs() map[string]string {
	machine := map[string]string{
		"ssh-username":     "Login user.",
		"ssh-password":     "Login password; also used for sudo if it asks.",
		"ssh-keyfile-path": "Private key on this machine; relative paths start in the folder of this file.",
		"ssh-secret-name":  "Name of the Kubernetes secret that will hold the key.",
		"ssh-port":         "Port of the SSH server; by default that of ~/.ssh/config, or 22.",
		"ssh-jump-host":    "Machine between you and the cluster: [user@]host[:port]; several, outermost first, separated by commas.",
		"ssh-known-hosts":  "Known_hosts file to check host keys against, instead of ~/.ssh/known_hosts.",
	}
	docs := map[string]string{
		"machines":                 "The machines: IPv4 addresses, or maps with hostip and the fields that differ from the other machines.",
		"machines[].hostip":        "IPv4 address of the machine.",
		"machines[].hostname":      "Host name; if missing, it is read from the machine.",
		"machines[].roles":         "Roles: master, worker, or both.",
		"machines[].labels":        "Labels of its Kubernetes node.",
		"machines[].taints":        "Taints of its Kubernetes node: key=value:Effect.",
		"dns":                      "DNS servers for the cluster; if missing, those of the first master.",
		"service-cluster-ip-range": "Addresses of services; " + defaultServiceRange + " if missing and free.",
		"masters":                  "Addresses or host names of the machines that run the control plane; if missing, the first machine.",
		"load-balance-ip":          "Address of a load balancer in front of several masters; if missing, each machine finds a master that is ready by itself.",
		"pod-cidr":                 "Addresses of pods, a /24 for each machine; " + defaultPodCIDR + " if missing and free.",
		"bundle":                   "Folder with the programs and images to install (paictl bundle build).",
		"gpu":                      "auto: the GPUs of the machines. none: use no GPUs. simulate: simulate GPUs, to try everything without a GPU.",
		"simulated-gpu":            "GPUs that workers simulate with gpu: simulate; " + defaultSimulatedGPU + " if missing.",
		"cluster-id":               "Name of this cluster in prompts, alerts and metrics; " + defaultClusterID + " if missing.",
		"cluster-name":             "Name of the cluster in certificates and in the kubeconfig; if missing, cluster-id.",
		"services":                 "The services' own settings: a section per service, named after it, written into services-configuration.yaml as it is.",
		"extra":                    "Further settings for kubelet, kube-proxy, containerd, kubeadm and sysctl.",
	}
	for field, text := range machine {
		docs[field], docs["machines[]."+field] = text, text
	}
	for field, text := range proxyDocs() {
		docs[field] = text
	}
	for field, text := range extraDocs() {
		docs["extra."+field] = text
	}
	return docs
}
