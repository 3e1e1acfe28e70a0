{{/*
prometheus.config: prometheus.yml. Every target has the labels job and instance; those of a node
have node, those of a pod namespace, pod, node and service (its app.kubernetes.io/name).
*/}}
{{- define "prometheus.config" -}}
global:
  scrape_interval: {{ .Values.scrape.interval }}
  scrape_timeout: {{ .Values.scrape.timeout }}
  evaluation_interval: 30s
  external_labels:
    cluster: {{ (.Values.global | default dict).clusterId | default "pai" | quote }}
rule_files:
  - /etc/prometheus/rules/*.yaml
alerting:
  alertmanagers:
    - kubernetes_sd_configs:
        - role: pod
          namespaces: {names: [{{ .Release.Namespace }}]}
          selectors: [{role: pod, label: app.kubernetes.io/name=alert-manager}]
      relabel_configs:
        - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: http}
      {{- with include "prometheus.access" . }}
      {{- . | nindent 6 }}
      {{- end }}
scrape_configs:
  {{- if .Values.scrape.apiserver }}
  {{- include "prometheus.apiserver" . | nindent 2 }}
  {{- end }}
  {{- if .Values.scrape.kubelet }}
  {{- include "prometheus.kubelet" . | nindent 2 }}
  {{- end }}
  {{- if .Values.scrape.cadvisor }}
  {{- include "prometheus.cadvisor" . | nindent 2 }}
  {{- end }}
  {{- if .Values.scrape.coredns }}
  {{- include "prometheus.coredns" . | nindent 2 }}
  {{- end }}
  {{- include "prometheus.services" . | nindent 2 }}
  {{- include "prometheus.state" . | nindent 2 }}
  {{- include "prometheus.gpus" . | nindent 2 }}
  {{- with .Values.scrape.extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* prometheus.otherNamespaces: other namespaces in which pods with annotations are read. */}}
{{- define "prometheus.otherNamespaces" -}}
{{- without .Values.scrape.namespaces .Release.Namespace | uniq | toJson -}}
{{- end -}}

{{/*
prometheus.access: the password of the platform's own programs. It is sent only to pods of the release's
namespace: users who may run pods elsewhere must not get it.
*/}}
{{- define "prometheus.access" -}}
{{- if include "pai.hasAccess" . -}}
basic_auth: {username: pai, password_file: /etc/pai-access/password}
{{- end -}}
{{- end -}}

{{/* prometheus.apiserver: each API server by its own address, so that a failing one is visible. */}}
{{- define "prometheus.apiserver" -}}
- job_name: apiserver
  scheme: https
  authorization: {credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
  tls_config:
    ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    # In the certificate of every API server; their addresses may not be.
    server_name: kubernetes.default.svc
  kubernetes_sd_configs:
    - role: endpointslice
      namespaces: {names: [default]}
      selectors: [{role: endpointslice, label: kubernetes.io/service-name=kubernetes}]
  relabel_configs:
    - {action: keep, source_labels: [__meta_kubernetes_endpointslice_port_name], regex: https}
  metric_relabel_configs:
    # Without this the histograms are nine tenths of all series. What stays: whatever is no
    # bucket, and the few buckets that alerts and dashboards use.
    - action: keep
      source_labels: [__name__, le]
      regex: '[^;]+;|apiserver_request_sli_duration_seconds_bucket;(0\.1|1(\.0)?|5(\.0)?|\+Inf)|apiserver_client_certificate_expiration_seconds_bucket;.+'
    # Hundreds of constants: which features the program was built with.
    - {action: drop, source_labels: [__name__], regex: kubernetes_feature_enabled}
{{- end -}}

{{/* prometheus.kubeletAccess: how each kubelet is reached. */}}
{{- define "prometheus.kubeletAccess" -}}
scheme: https
authorization: {credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
tls_config:
  ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
  insecure_skip_verify: {{ .Values.kubelet.insecureSkipVerify }}
kubernetes_sd_configs:
  - role: node
{{- end -}}

{{/* prometheus.kubelet: the kubelets themselves. */}}
{{- define "prometheus.kubelet" -}}
- job_name: kubelet
  {{- include "prometheus.kubeletAccess" . | nindent 2 }}
  relabel_configs:
    - {source_labels: [__meta_kubernetes_node_name], target_label: node}
  metric_relabel_configs:
    - action: keep
      source_labels: [__name__, le]
      regex: '[^;]+;|kubelet_(pleg_relist|pod_start_sli)_duration_seconds_bucket;.+'
    - {action: drop, source_labels: [__name__], regex: kubernetes_feature_enabled}
{{- end -}}

{{/* prometheus.cadvisor: the containers, as kubelets measure them. */}}
{{- define "prometheus.cadvisor" -}}
- job_name: cadvisor
  {{- include "prometheus.kubeletAccess" . | nindent 2 }}
  metrics_path: /metrics/cadvisor
  # Samples carry the kubelet's own times; with them a container that is gone would seem to live on
  # for five minutes.
  honor_timestamps: false
  relabel_configs:
    - {source_labels: [__meta_kubernetes_node_name], target_label: node}
  metric_relabel_configs:
    - action: keep
      source_labels: [__name__]
      regex: 'container_(cpu_(usage|cfs_throttled|cfs)_.+|memory_(working_set_bytes|rss|cache|failcnt)|network_(receive|transmit)_(bytes|packets|errors|packets_dropped)_total|fs_(reads|writes)_bytes_total|oom_events_total|spec_(memory_limit_bytes|cpu_quota|cpu_period)|start_time_seconds)|machine_(cpu_cores|memory_bytes)'
    # Of the tree of control groups only its root and the containers: the branches are their sums. What ran out of memory is
    # the branch of all pods, too. Networks belong to pods, not to containers.
    - {action: drop, source_labels: [__name__, container, id], regex: 'container_((cpu|memory|fs|spec|start)_.+;;/.+|oom_.+;;/.+/.+)'}
{{- end -}}

{{/* prometheus.coredns: the cluster's DNS, if it is CoreDNS, as installed by kubeadm. */}}
{{- define "prometheus.coredns" -}}
- job_name: coredns
  kubernetes_sd_configs:
    - role: pod
      namespaces: {names: [kube-system]}
      selectors: [{role: pod, label: k8s-app=kube-dns}]
  relabel_configs:
    - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics}
    - {target_label: service, replacement: coredns}
    - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
    - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
    - {source_labels: [__meta_kubernetes_pod_node_name], target_label: node}
  metric_relabel_configs:
    - {action: keep, source_labels: [__name__, le], regex: '[^;]+;|coredns_dns_request_duration_seconds_bucket;.+'}
{{- end -}}

{{/*
prometheus.annotated: the pods to read, and their addresses, by the annotations
prometheus.io/scrape, port, path and scheme. A new service needs only these.
*/}}
{{- define "prometheus.annotated" -}}
- {action: keep, source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape], regex: "true"}
- {action: drop, source_labels: [__meta_kubernetes_pod_phase], regex: Succeeded|Failed}
- {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scheme], regex: (http|https), target_label: __scheme__}
- {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_path], regex: (.+), target_label: __metrics_path__}
# A pod has as many targets as ports. With the port of the annotation they are one and the same.
- source_labels: [__meta_kubernetes_pod_ip, __meta_kubernetes_pod_annotation_prometheus_io_port]
  regex: ([^:]+);(\d+)
  target_label: __address__
  replacement: $1:$2
- source_labels: [__meta_kubernetes_pod_ip, __meta_kubernetes_pod_annotation_prometheus_io_port]
  regex: (.*:.*);(\d+)
  target_label: __address__
  replacement: '[$1]:$2'
- {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], regex: (.+), target_label: job}
- {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], regex: (.+), target_label: service}
{{- end -}}

{{/*
prometheus.services: services of the platform, node-exporter and Prometheus itself included; targets in other
namespaces are read without a password.
*/}}
{{- define "prometheus.services" -}}
{{- include "prometheus.annotatedIn" (dict "root" . "job" "services" "namespaces" (list .Release.Namespace | toJson) "access" (include "prometheus.access" .)) }}
{{- if ne (include "prometheus.otherNamespaces" .) "[]" }}
{{ include "prometheus.annotatedIn" (dict "root" . "job" "other-services" "namespaces" (include "prometheus.otherNamespaces" .) "access" "") }}
{{- end }}
{{- end -}}

{{- define "prometheus.annotatedIn" -}}
- job_name: {{ .job }}
  {{- with .access }}
  {{- . | nindent 2 }}
  {{- end }}
  sample_limit: {{ int64 .root.Values.scrape.sampleLimit }}
  # For programs that don't say which format they write.
  fallback_scrape_protocol: PrometheusText0.0.4
  kubernetes_sd_configs:
    - role: pod
      namespaces: {names: {{ .namespaces }}}
  relabel_configs:
    # These have jobs of their own, below.
    - {action: drop, source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], regex: kube-state-metrics|dcgm-exporter|agent}
    {{- include "prometheus.annotated" .root | nindent 4 }}
    - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
    - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
    - {source_labels: [__meta_kubernetes_pod_node_name], target_label: node}
{{- end -}}

{{/*
prometheus.state: kube-state-metrics. It exports metrics of the cluster's objects, so its own
namespace, pod and node would be mistaken for theirs.
*/}}
{{- define "prometheus.state" -}}
{{- include "prometheus.stateIn" (dict "job" "kube-state-metrics" "namespaces" (list .Release.Namespace | toJson) "access" (include "prometheus.access" .)) }}
{{- if ne (include "prometheus.otherNamespaces" .) "[]" }}
{{ include "prometheus.stateIn" (dict "job" "other-kube-state-metrics" "namespaces" (include "prometheus.otherNamespaces" .) "access" "") }}
{{- end }}
{{- end -}}

{{- define "prometheus.stateIn" -}}
- job_name: {{ .job }}
  {{- with .access }}
  {{- . | nindent 2 }}
  {{- end }}
  honor_labels: true
  kubernetes_sd_configs:
    - role: pod
      namespaces: {names: {{ .namespaces }}}
      selectors: [{role: pod, label: app.kubernetes.io/name=kube-state-metrics}]
  relabel_configs:
    - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: http|http-metrics|metrics}
    - {target_label: service, replacement: kube-state-metrics}
    - {target_label: job, replacement: kube-state-metrics}
{{- end -}}

{{/*
prometheus.gpus: NVIDIA's dcgm-exporter, or paictl's agent. They export the pod that uses a GPU; node is
set here, so that it is the same as in other jobs.
*/}}
{{- define "prometheus.gpus" -}}
{{- include "prometheus.gpusIn" (dict "job" "gpus" "namespaces" (list .Release.Namespace | toJson) "access" (include "prometheus.access" .)) }}
{{- if ne (include "prometheus.otherNamespaces" .) "[]" }}
{{ include "prometheus.gpusIn" (dict "job" "other-gpus" "namespaces" (include "prometheus.otherNamespaces" .) "access" "") }}
{{- end }}
{{- end -}}

{{- define "prometheus.gpusIn" -}}
- job_name: {{ .job }}
  {{- with .access }}
  {{- . | nindent 2 }}
  {{- end }}
  honor_labels: true
  kubernetes_sd_configs:
    - role: pod
      namespaces: {names: {{ .namespaces }}}
      selectors: [{role: pod, label: "app.kubernetes.io/name in (dcgm-exporter, agent)"}]
  relabel_configs:
    - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics}
    - {target_label: job, replacement: gpus}
    - {source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name], target_label: service}
    - {source_labels: [__meta_kubernetes_pod_node_name], target_label: node}
{{- end -}}
