{{/*
scheduler.configuration: the complete hivedscheduler.yaml. paictl creates it from the layout and the section;
plain helm uses the values.
*/}}
{{- define "scheduler.configuration" -}}
{{- $whole := (.Values.global | default dict).schedulerConfiguration | default .Values.config -}}
{{- $whole | default (toYaml (dict "physicalCluster" .Values.physicalCluster "virtualClusters" .Values.virtualClusters "reserveGPUMachines" .Values.reserveGPUMachines)) -}}
{{- end -}}

{{/*
scheduler.kubeScheduler: the configuration of kube-scheduler: (dict "root" $ "virtualClusters" list).
Pods for HiveD name a scheduler of their virtual cluster; here, it is the same one.
*/}}
{{- define "scheduler.kubeScheduler" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: pai-scheduler
  resourceNamespace: {{ .root.Release.Namespace }}
  # A leader acts for renewDeadline after it has renewed its lease; another one waits for leaseDuration.
  leaseDuration: 10s
  renewDeadline: 6s
  retryPeriod: 1500ms
podInitialBackoffSeconds: {{ .root.Values.kubeScheduler.initialBackoffSeconds }}
podMaxBackoffSeconds: {{ .root.Values.kubeScheduler.maxBackoffSeconds }}
profiles:
  - schedulerName: pai-scheduler
    {{- include "scheduler.profile" . | nindent 4 }}
  {{- range .virtualClusters }}
  - schedulerName: {{ printf "hivedscheduler-ds-%s" . | quote }}
    {{- include "scheduler.profile" . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/*
scheduler.profile: the part that all profiles share. The plugin Pai comes before others if their order matters.
*/}}
{{- define "scheduler.profile" -}}
plugins:
  # PaiDynamicResources is DynamicResources for all pods whose claims Pai doesn't fill.
  multiPoint: {enabled: [{name: Pai}, {name: PaiDynamicResources, weight: 2}], disabled: [{name: DynamicResources}]}
  queueSort: {enabled: [{name: Pai}], disabled: [{name: "*"}]}
  preFilter: {enabled: [{name: Pai}]}
  postFilter: {enabled: [{name: Pai}]}
  bind: {enabled: [{name: Pai}]}
pluginConfig:
  # Pods that ask for it have cells, which Pai counts.
  - name: NodeResourcesFit
    args: {ignoredResources: [hivedscheduler.microsoft.com/pod-scheduling-enable]}
{{- end -}}
