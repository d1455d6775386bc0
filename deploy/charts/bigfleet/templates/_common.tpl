{{- /* Shared by both charts: bigfleet-cluster has a copy of this file, which a test compares. */ -}}

{{- /* The image, by digest if there is one. */ -}}
{{- define "bigfleet.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* Labels that select the pods of one component: list of root, component. */ -}}
{{- define "bigfleet.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: bigfleet-{{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end -}}

{{- /* Labels of every object of one component: list of root, component. */ -}}
{{- define "bigfleet.labels" -}}
{{- $root := index . 0 -}}
{{ include "bigfleet.selector" . }}
app.kubernetes.io/part-of: bigfleet
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Flags as arguments, by name. True is the flag alone, false and null leave it out. Whole numbers are written whole. */ -}}
{{- define "bigfleet.flags" -}}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
{{- if $value }}
- --{{ $name }}
{{- end }}
{{- else if kindIs "float64" $value }}
- {{ printf "--%s=%s" $name (ternary (printf "%.0f" $value) (printf "%v" $value) (eq $value (floor $value))) | quote }}
{{- else if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* What every container may do: nothing. */ -}}
{{- define "bigfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* As whom every pod runs. */ -}}
{{- define "bigfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Where pods go and how: the settings of one component. */ -}}
{{- define "bigfleet.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The version of disruption budgets that the server has. */ -}}
{{- define "bigfleet.pdbVersion" -}}
{{ ternary "policy/v1" "policy/v1beta1" (semverCompare ">=1.21.0-0" .Capabilities.KubeVersion.Version) }}
{{- end -}}

{{- /* A ServiceMonitor: list of root, component. */ -}}
{{- define "bigfleet.serviceMonitor" -}}
{{- $root := index . 0 -}}
{{- $monitor := $root.Values.monitoring.serviceMonitor -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ $root.Release.Name }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "bigfleet.labels" . | nindent 4 }}
    {{- with $monitor.labels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  # Alerts find our targets by this name.
  jobLabel: app.kubernetes.io/name
  selector:
    matchLabels: {{- include "bigfleet.selector" . | nindent 6 }}
      bigfleet.lucy.sh/scrape: "true"
  namespaceSelector: {matchNames: [{{ $root.Release.Namespace }}]}
  endpoints:
  - port: metrics
    path: /metrics
    interval: {{ $monitor.interval }}
    scrapeTimeout: {{ $monitor.scrapeTimeout }}
{{- end -}}

{{- /* A Certificate of cert-manager: dict of root, component, name, secret, uri (or ""), dnsNames, usages. */ -}}
{{- define "bigfleet.certificate" -}}
{{- $cm := .root.Values.tls.certManager -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "bigfleet.labels" (list .root .component) | nindent 4 }}
spec:
  secretName: {{ .secret }}
  duration: {{ $cm.duration }}
  renewBefore: {{ $cm.renewBefore }}
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Always}
  usages: {{- toYaml .usages | nindent 2 }}
  {{- with .uri }}
  uris: [{{ . | quote }}]
  {{- end }}
  {{- with .dnsNames }}
  dnsNames: {{- toYaml . | nindent 2 }}
  {{- end }}
  issuerRef: {{- toYaml $cm.issuerRef | nindent 4 }}
{{- end -}}
