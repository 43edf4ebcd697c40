{{- define "tiphys.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "tiphys.nodes" -}}
{{- dict
      "image" (include "tiphys.image" .)
      "imagePullPolicy" .Values.image.pullPolicy
      "imagePullSecrets" .Values.image.pullSecrets
      "nodeSelector" .Values.nodeSelector
      "tolerations" .Values.tolerations
    | toJson -}}
{{- end -}}

{{- define "tiphys.restricted" -}}
{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
{{- end -}}

{{- define "tiphys.labels" -}}
app.kubernetes.io/name: tiphys
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* A ClusterWorkflowTemplate: one container that runs the executor. What a workflow is asked to do
       goes in as variables, so no parameter can become a command. */ -}}
{{- define "tiphys.template" -}}
{{- $root := .root -}}
apiVersion: argoproj.io/v1alpha1
kind: ClusterWorkflowTemplate
metadata:
  name: tiphys-{{ .action }}
  labels: {{- include "tiphys.labels" $root | nindent 4 }}
  annotations:
    workflows.argoproj.io/description: {{ .description | quote }}
spec:
  entrypoint: {{ .action }}
  activeDeadlineSeconds: {{ $root.Values.deadlineSeconds | int64 }}
  workflowMetadata:
    labels:
      app.kubernetes.io/part-of: tiphys
    labelsFrom:
      tiphys.dev/platform: { expression: "workflow.parameters.platform" }
      tiphys.dev/argocd: { expression: "workflow.parameters['argocd-namespace']" }
  arguments:
    parameters:
      - name: platform
        description: name of the platform
      - name: scope
        value: platform
        description: "platform, stack:NAME or app:NAME, several separated by commas"
      - name: environment
        value: ""
        description: if set, a platform of another environment is refused
      - name: argocd-namespace
        value: argocd
        description: namespace of the platform's Argo CD
      {{- if eq .action "deploy" }}
      - name: unattended
        value: ""
        description: "true if no person starts it: it then does nothing while automatic deployments are paused, or after a teardown"
      {{- end }}
      {{- if eq .action "teardown" }}
      - name: confirm
        value: ""
        description: must be the name of the platform
      {{- end }}
  ttlStrategy:
    secondsAfterSuccess: {{ $root.Values.history.successSeconds | int64 }}
    secondsAfterFailure: {{ $root.Values.history.failureSeconds | int64 }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile: { type: RuntimeDefault }
  {{- with $root.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  templates:
    - name: {{ .action }}
      inputs:
        parameters:
          - name: platform
          - name: scope
          - name: environment
          - name: argocd-namespace
          {{- if eq .action "deploy" }}
          - name: unattended
          {{- end }}
          {{- if eq .action "teardown" }}
          - name: confirm
          {{- end }}
      # The account of this platform for this action, which `tiphys configure` makes.
      serviceAccountName: "tiphys.{{ "{{inputs.parameters.argocd-namespace}}.{{inputs.parameters.platform}}" }}.{{ .action }}"
      {{- if ne .action "validate" }}
      # One run of a platform at a time; the others wait in line.
      synchronization:
        mutexes:
          - name: "{{ "{{inputs.parameters.argocd-namespace}}.{{inputs.parameters.platform}}" }}"
            namespace: tiphys
      {{- end }}
      # A pod that was evicted, killed or deleted, or that did not reach the cluster (6), is replaced, and
      # the run resumes. A failed run is not repeated, nor is a pod that may not be created.
      retryStrategy:
        limit: "10"
        retryPolicy: Always
        expression: "lastRetry.exitCode in ['-1', '6', '137', '143'] && !(lastRetry.message contains 'forbidden')"
        backoff: { duration: 10s, factor: 2, cap: 2m }
      # The namespaces enforce the Pod Security Standard `restricted`, also for the containers of Argo
      # Workflows beside ours.
      podSpecPatch: |
        initContainers:
          - name: init
            securityContext: {{ include "tiphys.restricted" . }}
        containers:
          - name: wait
            securityContext: {{ include "tiphys.restricted" . }}
            # How far a run is reaches the workflow after five seconds, not after a minute.
            env:
              - { name: ARGO_PROGRESS_FILE_TICK_DURATION, value: 1s }
              - { name: ARGO_PROGRESS_PATCH_TICK_DURATION, value: 5s }
      container:
        image: {{ include "tiphys.image" $root }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        command: [/tiphys, executor]
        env:
          - { name: TIPHYS_ACTION, value: {{ .action }} }
          - { name: TIPHYS_PLATFORM, value: "{{ "{{inputs.parameters.platform}}" }}" }
          - { name: TIPHYS_SCOPE, value: "{{ "{{inputs.parameters.scope}}" }}" }
          - { name: TIPHYS_ENVIRONMENT, value: "{{ "{{inputs.parameters.environment}}" }}" }
          - { name: TIPHYS_NAMESPACE, value: "{{ "{{inputs.parameters.argocd-namespace}}" }}" }
          {{- if eq .action "deploy" }}
          - { name: TIPHYS_UNATTENDED, value: "{{ "{{inputs.parameters.unattended}}" }}" }
          # For platforms with `workflows: nodes`: the workflow that the nodes belong to, and their pod.
          - { name: TIPHYS_ENGINE, value: workflows }
          - { name: TIPHYS_WORKFLOW, value: "{{ "{{workflow.name}}" }}" }
          - { name: TIPHYS_WORKFLOW_UID, value: "{{ "{{workflow.uid}}" }}" }
          - name: TIPHYS_NODES
            value: {{ include "tiphys.nodes" $root | quote }}
          {{- end }}
          {{- if eq .action "teardown" }}
          - { name: TIPHYS_CONFIRM, value: "{{ "{{inputs.parameters.confirm}}" }}" }
          {{- end }}
        resources: {{- toYaml $root.Values.resources | nindent 10 }}
        securityContext: {{ include "tiphys.restricted" . }}
{{- end -}}
