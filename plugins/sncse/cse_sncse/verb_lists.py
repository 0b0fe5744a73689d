"""English verbs as lists: irregular ones with their forms, regular ones, those like nouns."""

from __future__ import annotations

IRREGULAR = """
arise arose arisen|awake awoke awoken|bear bore born|beat beat beaten|become became become|
begin began begun|bend bent bent|bet bet bet|bind bound bound|bite bit bitten|bleed bled bled|
blow blew blown|break broke broken|breed bred bred|bring brought brought|
broadcast broadcast broadcast|build built built|burst burst burst|buy bought bought|cast cast cast|
catch caught caught|choose chose chosen|cling clung clung|come came come|cost cost cost|
creep crept crept|cut cut cut|deal dealt dealt|dig dug dug|draw drew drawn|drink drank drunk|
drive drove driven|eat ate eaten|fall fell fallen|feed fed fed|feel felt felt|fight fought fought|
find found found|flee fled fled|fling flung flung|fly flew flown|forbid forbade forbidden|
forecast forecast forecast|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|
get got gotten|give gave given|go went gone|grind ground ground|grow grew grown|hang hung hung|
hear heard heard|hide hid hidden|hit hit hit|hold held held|hurt hurt hurt|keep kept kept|
kneel knelt knelt|know knew known|lay laid laid|lead led led|leave left left|lend lent lent|
let let let|lie lay lain|light lit lit|lose lost lost|make made made|mean meant meant|meet met met|
mistake mistook mistaken|overcome overcame overcome|oversee oversaw overseen|
overtake overtook overtaken|overthrow overthrew overthrown|pay paid paid|put put put|
quit quit quit|read read read|ride rode ridden|ring rang rung|rise rose risen|run ran run|
say said said|see saw seen|seek sought sought|sell sold sold|send sent sent|set set set|
sew sewed sewn|shake shook shaken|shed shed shed|shine shone shone|shoot shot shot|
show showed shown|shrink shrank shrunk|shut shut shut|sing sang sung|sink sank sunk|sit sat sat|
sleep slept slept|slide slid slid|speak spoke spoken|spend spent spent|spin spun spun|
split split split|spread spread spread|spring sprang sprung|stand stood stood|steal stole stolen|
stick stuck stuck|sting stung stung|strike struck struck|strive strove striven|swear swore sworn|
sweep swept swept|swim swam swum|swing swung swung|take took taken|teach taught taught|
tear tore torn|tell told told|think thought thought|throw threw thrown|undergo underwent undergone|
understand understood understood|undertake undertook undertaken|uphold upheld upheld|
wake woke woken|wear wore worn|weave wove woven|weep wept wept|win won won|wind wound wound|
withdraw withdrew withdrawn|withstand withstood withstood|wring wrung wrung|write wrote written|
rebuild rebuilt rebuilt|retake retook retaken|rewrite rewrote rewritten|outdo outdid outdone|
undo undid undone|learn learnt learnt|burn burnt burnt|dream dreamt dreamt|spell spelt spelt|
spoil spoilt spoilt|behold beheld beheld|bide bode bidden|dwell dwelt dwelt|
foresee foresaw foreseen|foretell foretold foretold|leap leapt leapt|lean leant leant|
mow mowed mown|mislead misled misled|misunderstand misunderstood misunderstood|
outgrow outgrew outgrown|outrun outran outrun|outsell outsold outsold|override overrode overridden|
overrun overran overrun|overhear overheard overheard|partake partook partaken|plead pled pled|
prove proved proven|redo redid redone|rethink rethought rethought|rid rid rid|rerun reran rerun|
resell resold resold|repay repaid repaid|saw sawed sawn|shear sheared shorn|slay slew slain|
sling slung slung|slink slunk slunk|slit slit slit|smell smelt smelt|sow sowed sown|
speed sped sped|spill spilt spilt|stink stank stunk|stride strode stridden|string strung strung|
swell swelled swollen|thrust thrust thrust|tread trod trodden|undercut undercut undercut|
underlie underlay underlain|unwind unwound unwound|upset upset upset|wed wed wed|
withhold withheld withheld|spit spat spat|bust bust bust|offset offset offset|outbid outbid outbid|
forgo forwent forgone|inset inset inset|interweave interwove interwoven|remake remade remade|
resit resat resat|reset reset reset|recast recast recast|regrow regrew regrown|
overdo overdid overdone|overfeed overfed overfed|oversleep overslept overslept|
overthink overthought overthought|overspend overspent overspent|misread misread misread|
misspell misspelt misspelt|preset preset preset|unbind unbound unbound|
undersell undersold undersold|outshine outshone outshone|sunburn sunburnt sunburnt|
typeset typeset typeset|browbeat browbeat browbeaten|inlay inlaid inlaid|mishear misheard misheard|
knit knit knit|bid bid bid
"""
"""Base form, past and participle of each."""
REGULAR = """
abandon abate abduct abide abolish abort abound absolve absorb abstain abuse accede accelerate
accept access acclaim accommodate accompany accomplish accrue accuse achieve acknowledge acquire
act activate adapt add address adhere adjourn adjust administer admire admit admonish adopt adorn
advance advertise advise advocate aerate affect afflict afford aggravate agree aid aim air airlift
alert alienate align allay allege allocate allot allow allude alter alternate amass amend amount
amplify amputate amuse analyse analyze anchor animate annex announce annoy annul anoint answer
anticipate apologise apologize appeal appear appease append applaud apply appoint appreciate
apprehend approach approve argue arm arouse arrange arrest arrive articulate ascend ascertain ask
aspire assail assassinate assault assemble assert assess assign assimilate assist associate assume
assure attach attack attain attempt attend attest attract attribute auction audit augment
authenticate authorize avail avenge average avert avoid await award axe back backfire backtrack
badger baffle bail bake balance ban band bang bank bar barbecue bark base bash bask bat bathe
batter battle beam beckon befall befriend beg begrudge behave believe belong bemoan benchmark
benefit berate besiege bestow betray bicker bike bill blacklist blackmail blame blast bleach blend
bless blink block bloom blossom blow-dry bluff blur blush board boast bob boil bolster bolt bomb
bombard bond boo book boost boot bop border borrow bother bounce bow box boycott brace brag braid
brand brawl breach breastfeed breathe brew bribe brief broaden browse bruise brush buckle budget
bulldoze bully bump bundle bunk burgle burrow bury bus bustle butcher buzz bypass cage calculate
calibrate call calm camouflage camp campaign cancel canoe cap capitulate capsize caption captivate
capture care caress carry carve cascade cater cause cave cease cede celebrate cement censor center
centre chain chair challenge champion change channel chant chaperone char charge chart charter
chase chat cheat check cheer cherish chew chill chip chirp choke chop chronicle chuckle churn
circulate circumvent cite clad claim clamour clamp clap clarify clash classify claw clean cleanse
clear cleave clench click climb clinch clip clog close cloud cluster clutch coach coat coax code
coerce coexist coil coin coincide collaborate collapse collect collide colonise colonize comb
combat combine comfort command commandeer commemorate commence commend comment commission commit
communicate commute compare compel compensate compete compile complain complete compliment comply
compose compound comprehend compress comprise compute conceal concede conceive concentrate
conceptualise conceptualize concern conclude concoct condemn condense condone conduct confer
confess confide configure confine confirm confiscate conform confront confuse congratulate conjure
connect connive conquer conscript conserve consider consist console consolidate conspire constitute
construct consult consume contact contain contaminate contemplate contend contest continue contract
contrast contribute contrive control convene converge converse convert convey convict convince cook
cool cooperate coordinate cope copy corner correct correspond counsel count counter counteract
couple court cover crack cram crash crave crawl crease create credit criss-cross criticise
criticize crochet crop cross cross-examine crouch crowd crown cruise crumble crunch crusade crush
cry cuddle cull culminate cultivate curate curb cure curl curse curtail curve cycle damage dampen
dance dangle dare dart dash date dazzle deactivate deadlock debate debrief debunk debut deceive
decide decimate decipher declare decline decorate decouple decrease decree decry dedicate deduce
deduct deem deepen default defeat defect defend defer define deflate deflect defraud defray defuse
defy degrade delay delegate delete delight deliver demand demobilise demolish demonstrate demote
denote denounce dent deny depart depend depict deplete deplore deploy deport depose deposit depress
deprive derail derive descend describe desert deserve design desire destabilise destabilize destroy
detach detail detain detect deter deteriorate determine detonate detour devalue devastate develop
deviate devise devolve devote devour diagnose dial dictate die differ differentiate diffuse digest
dilute diminish dine dip direct disable disagree disappear disapprove disarm disavow disband
disburse discard discern discharge discipline disclose disconnect discontinue discourage discover
discriminate discuss disembark disguise disgust dislike dislodge dismantle dismiss dismount disobey
disown dispatch dispel disperse displace display dispose disprove dispute disqualify disregard
disrupt disseminate dissipate dissolve dissuade distill distinguish distort distract distribute
distrust ditch dive diverge diversify divert divide divorce divulge dock document dodge dominate
donate double doubt downgrade download downplay downsize doze draft drag drain drape dread drench
dress dribble drift drill drip droop drop drown drum dry dub duck duel dump dunk duplicate dust dye
earmark earn ease echo eclipse edge edit educate eject elaborate elect elevate eliminate elope
elude email emanate embark embarrass embattle embed embellish embezzle embody embrace emerge
emigrate emit emphasize employ empower empty enable enact encircle enclose encode encompass
encounter encourage encroach end endanger endorse endow endure energize enforce engage engrave
engulf enhance enjoy enlarge enlighten enlist enliven enrage enrich enrol enroll ensnare ensue
ensure entail entangle enter entertain enthrall entice entitle entrust enumerate envelop envisage
envision epitomize equal equate equip eradicate erase erect erode erupt escalate escape escort
establish estimate evacuate evade evaluate evaporate evict evoke evolve exaggerate examine excavate
exceed excel exchange excite exclaim exclude excrete excuse execute exemplify exempt exercise exert
exhale exhaust exhibit exile exist exit exonerate expand expect expel expend experience expire
explain explode exploit explore export expose express expunge extend extinguish extort extract
extradite extrapolate exude eye fabricate face facilitate fade fail falter fan farm fascinate
fashion fasten fault favor favour fear feast feature feign fend ferment ferry fetch fiddle figure
file fill film finalise finalize finance fine finetune finger finish fire fish fit fix flag flank
flap flare flash flatten flatter flaunt flaw flick flicker flinch flip flirt float flock flog flood
flop flounder flourish flow fluctuate flush fluster flutter focus foil fold follow fool forage
force forfeit forge form formalise formalize formulate fortify foster found fracture frame free
frequent frighten front frown frustrate fry fuel fulfil fulfill fumble fume function fund funnel
furnish fuse gain gallop gamble garner gasp gatecrash gather gauge gaze gear generalize generate
germinate gesture gift giggle glance glare gleam glide glimpse glisten glitter gloat glow glue gnaw
gossip govern grab grade graduate grant grapple grasp grate graze greet grieve grill grimace grin
grip gripe groan groom grope ground group grouse growl grumble grunt guarantee guard guess guide
gulp gush gut guzzle hack haggle hail hallucinate halt halve hammer hamper hand handcuff handle
happen harass harbor harbour harden harm harness harvest hasten hatch hate haul haunt head headline
heal heap heat heave heed heighten help herald herd hesitate hibernate highlight hijack hike hinder
hinge hint hire hiss hitchhike hoard hoist homeschool honeymoon honor honour hook hop hope horrify
hose hospitalise hospitalize host hound house hover howl huddle hug hum humiliate hunker hunt
hurdle hurl hurry hurtle hustle hypothesise hypothesize identify ignite ignore illuminate
illustrate imagine imitate immerse immigrate impact impair impeach impede impersonate implant
implement implicate implore imply import impose impound impress imprint imprison improve
incarcerate inch incite incline include incorporate increase incur index indicate indict
indoctrinate induce induct indulge infect infer infest infiltrate inflate inflict influence inform
infringe infuriate inhabit inhale inherit inhibit initiate inject injure ink innovate inquire
inscribe insert insist inspect inspire install instigate instil institute instruct insulate insult
insure integrate intend intensify interact intercept interfere interpret interrogate interrupt
intersect intertwine intervene interview intimidate intrigue introduce intrude inundate invade
invent invert invest investigate invite invoke involve iron irritate isolate issue italicise jab
jail jailbreak jam jeopardise jeopardize jet jet-ski jog join joke jostle jot judge juggle jump
justify kayak kick kick-start kidnap kill kiss knock label lack lag lambast lambaste lament lampoon
land landscape lap lash lasso last latch lather laud laugh launch lease lecture legalise legalize
legislate lengthen level leverage levy liaise liberate license lick lift lighten like limit line
linger link liquidate list listen litter live load loan loathe lob lobby locate lock lodge log
loiter long look loom loop loosen loot lounge love lower lug lunge lure lurk magnify mail maim
maintain malfunction manage mandate maneuver manifest manipulate manoeuvre manufacture map mar
march mark market marry marvel mash mask masquerade massacre massage master match mate materialise
materialize matter mature maul maximise maximize meander measure meddle mediate melt memorise
memorize mend mention mentor merge merit microwave migrate mind mine mingle minimise minimize
mirror misplace misrepresent miss misuse mitigate mix moan mobilise mobilize mock model moderate
modernise modernize modify mold monitor moor mop motivate motor mount mourn mouth move mug mull
multiply multitask mumble munch murder muse muster mutter nab nag nail name nap narrate narrow
nationalise nationalize near need negate neglect negotiate nest nestle net network neutralise
neutralize nibble nix nod nominate normalise normalize note notice notify nudge nullify number
nurse nurture obey object oblige obscure observe obsess obstruct obtain occupy occur offer
officiate omit ooze open operate oppose oppress opt optimise optimize orbit orchestrate ordain
order organise organize originate oscillate oust outfit outlast outlaw outline outlive outnumber
outpace outperform outrage outweigh overcharge overestimate overhaul overheat overlap overload
overlook overpower overreact overrule overshadow overtax overturn overwhelm owe own pack paddle
page paint pamper pan panic parachute parade parallel paralyse paralyze pardon park parody parse
participate pass paste pat patch patent patrol pause pave peak peck pedal peddle peek peel peep
peer pelt penalise penalize penetrate perceive perch perfect perform perish permeate permit
perpetrate persecute persevere persist persuade pester pet petition phone photograph pick picket
picture pierce pile pilot pin pinpoint pioneer pip pipe pitch placate place plague plan plant
plaster plateau play please pledge plot plough plow pluck plug plummet plunder plunge poach pocket
point poison poke polarise police polish poll pollute ponder pop popularise popularize populate
portray pose possess post postpone pot pounce pound pour power practice practise praise pray preach
precede preclude predate predict prefer prepare prescribe present preserve preside press pressure
presume pretend prevail prevent prey price prick prime print prise privatise privatize probe
proceed process proclaim procure prod produce profess profit program progress prohibit project
proliferate prolong promise promote prompt pronounce proofread propagate propel prophesy propose
prosecute prosper protect protest provide provoke prowl publicise publicize publish puff pull
pummel pump punch puncture punish purchase purge purport purr pursue push puzzle qualify quantify
quarantine quarrel quash quell quench question quip quiver quiz quote race radiate raft rage raid
rain raise rake rally ram rampage range rank ransack rap rape ratchet rate ratify rattle ravage
raze reach react readjust ready reaffirm realise realize reappear reappoint rear rearrange reason
reassess reassign reassure rebel rebound rebrand rebuff rebuke rebut recall recant recede receive
recharge recite reckon recline recognise recognize recoil recommend reconcile reconsider
reconstruct reconvene record recount recoup recover recreate recruit rectify recuperate recur
recycle redact redeem redefine redesign redevelop redirect redistribute reduce reel reelect refer
refill refinance refine reflect reform refrain refresh refuel refund refurbish refuse refute regain
regard regenerate register regret regroup regulate rehearse reign reimagine reimburse rein
reinforce reinstate reintroduce reinvent reissue reiterate reject rejoice rejoin relapse relate
relax relay release relegate relieve relinquish relish relive relocate rely remain remark remedy
remember remind reminisce remit remix remodel remove rename render renew renounce renovate rent
reopen reorganise reorganize repair repatriate repeal repeat repel replace replant replay replenish
replicate reply report reposition repossess represent repress reprimand reprint reprise reproduce
repurchase request require reroute reschedule rescue research resemble reserve resettle reshape
reshuffle reside resign resist resolve resonate resort respond rest restart restore restrain
restrict restructure resubmit result resume resurface resurrect retain retaliate retell retire
retool retort retract retrain retreat retrieve return reunify reunite reuse revamp reveal revel
reverberate reverse revert review revise revisit revitalise revitalize revive revoke revolt revolve
reward rewind ricochet rig rile rinse rip ripen rival roam roar roast rob rock roll romp root
rotate round rouse rout route row rub ruin rule rumble rummage rupture rush sack sadden saddle
safeguard sail salivate salute salvage sample sanction satisfy saunter save scald scale scan scare
scatter scavenge schedule scold scoop scorch score scout scramble scrap scrape scratch scream
screech screen screw scribble scrub scrutinise scrutinize scuffle sculpt seal search seat secede
secure sedate seduce seem seep segregate seize select sensationalise sense sentence separate serve
settle sever shackle shadow shame shape share shatter shave shelter shelve shield shift shimmer
ship shirk shiver shock shop shoplift shortlist shoulder shout shove shovel showcase shower shred
shrug shuffle shun shunt shuttle sideline sidestep sidetrack siege sigh sign signal silence simmer
simplify simulate single sip situate size skate skateboard sketch ski skid skim skip skirt skydive
slack slam slander slap slash slate slaughter sled slice slim slip slither slow slump slur smack
smash smear smile smoke smother smoulder smuggle snag snap snarl snatch sneak sneeze sniff snooze
snore snorkel snort snow snowboard snub soak soar soften soldier solicit solidify solve soothe sort
sound span spar spare spark sparkle spawn spearhead specialise specialize specify speculate spike
spiral spit-shine splash splinter splurge sponsor spook spot sprawl spray sprinkle sprint sprout
spur spy squabble squander squash squat squeak squeal squeeze squint squirt stab stabilise
stabilize stack staff stage stagger stagnate stake stalk stall stamp stampede staple star stare
start startle starve stash state station stay steady steam steer stem step stereotype stifle
stimulate stipulate stir stitch stock stockpile stomp stonewall stoop stop store storm stow
straddle straighten strain strand strap strategise stray streak stream streamline strengthen stress
stretch strip stroke stroll struggle strum strut stub study stuff stumble stun stunt stutter subdue
submit subordinate subscribe subside subsidise subsidize substitute subtract subvert succeed suckle
sue suffer suffice suffocate suggest suit sulk sum summarise summarize summon superimpose supersede
supervise supplant supplement supply support suppose suppress surf surge surmise surmount surpass
surprise surrender surround survey survive suspect suspend sustain swallow swap swarm sway sweat
swelter swerve swindle swipe swirl switch swivel swoop symbolise symbolize sympathise sympathize
sync synthesise synthesize tackle tag tail taint talk tame tamper tangle tango tap tape taper
target tarnish taste tattoo taunt tax tease tee teem telephone televise tempt tend terminate test
testify tether text thank thaw thicken thrash threaten thrill thrive throb throng throttle thump
thunder thwart tick tickle tidy tie tighten tilt time tip tire title toast tolerate top topple
torch torment torture toss total tote touch tour tout tow tower toy trace track trade trail train
trample transcend transcribe transfer transform translate transmit transpire transplant transport
trap trash traumatise travel traverse treasure treat trek tremble trespass trick trickle trigger
trim triple triumph trivialise trot trouble trudge trump trumpet trust try tuck tug tumble turn
tussle tutor tweak tweet twirl twist type unblock unclog uncover underestimate underline undermine
underpin underscore unearth unfold unify unite unleash unload unlock unpack unplug unravel unseat
unsettle untie unveil unwrap up update upgrade uphold uproot upstage urge use usher usurp utilize
utter vacate vaccinate validate value vandalise vandalize vanish vaporise vary vault veer veil
venerate vent ventilate venture verge verify vest veto vibrate victimise videotape vie view vilify
vindicate violate visit voice volunteer vote vouch vow wade wag wage wager wait waive walk wallop
wander wane want warn warp warrant wash waste watch water wave waver weaken wean weather weed weigh
welcome weld whack wheel whimper whine whip whirl whisk whisper whistle whitewash whittle widen
wield wink wipe wire wish wither witness wobble wonder woo work worry worsen worship wound wow
wrack wrangle wrap wreak wreck wrestle yank yawn yearn yell yield yodel zap zigzag zip zoom
"""
"""Base forms of verbs that have -ed; a verb may have both."""
NOUNS_TOO = """
abuse access act address advance advocate aid aim air alert amount anchor answer appeal approach
arm arrest assault associate attack attempt attribute auction audit average award axe back badger
bail balance ban band bang bank bar barbecue bark base bash bat battle beam bear beat bend bet bid
bike bill bite blame blast blend block bloom blossom blow blur board boast bob boil bolt bomb bond
book boost boot border bounce bow box boycott brace braid brand brawl breach break breed brew bribe
brief bruise brush buckle budget bump bundle burn burst bus bust butcher buzz bypass cage call calm
camp campaign canoe cap caption capture care cascade cast catch cause cave cement center centre
chain chair challenge champion change channel chant charge chart charter chase chat cheat check
cheer chill chip choke chop chronicle claim clash claw clean clear click climb clip close cloud
cluster clutch coach coat code coil coin collapse comb combat comfort command comment commission
complete compliment compound concern conduct confine conscript contact contest contract contrast
control convict cook cool copy corner cost counsel count counter couple court cover crack crash
crawl crease credit crop cross crowd crown cruise crusade crush cry cull cure curl curse curve cut
cycle damage dance dart dash date deadlock deal debate debut decline decrease decree default defeat
defect delay delegate delight demand dent deposit desert design desire detail detour dial die dig
digest dip direct discharge discipline disguise disgust dislike dispatch display dispute distrust
ditch dive divide divorce dock document dodge double doubt draft drag drain draw dread dream dress
drift drill drink drip drive drop drum dry duck duel dump duplicate dust dye ease echo eclipse edge
elaborate email empty encounter end equal escape escort estimate exchange excuse exercise exhaust
exhibit exile exit experience exploit export express extract eye face fade fall fan farm fashion
fault favor favour fear feature feed ferry fiddle fight figure file fill film finance fine finger
finish fire fish fit fix flag flank flap flare flash flaw flip flirt float flock flood flop flow
flush fly focus foil fold fool force forecast forge form foster found fracture frame free freeze
front frown fry fuel function fund gain gallop gamble gauge gaze gear gesture giggle glance glare
glimpse glow glue gossip grade grant grasp grin grip gripe groan groom ground group grunt guarantee
guard guess guide gulp hack hail halt hammer hand handcuff handle harbor harbour harm harness
harvest hate haul head heap heat help herald herd hide highlight hike hint hire hit hold honor
honour hook hop hope hose host hound house hug hum hunt hurdle hurry hurt impact implant import
imprint increase index influence ink insert insult interview intrigue invite iron issue jab jail
jam jet jog joke judge jump kick kidnap kiss knit knock label lack land landscape lap lash last
latch laugh launch lead lean leap lease lecture level levy license lick lie lift light like limit
line link list live load loan lobby lock log long look loop loot lounge love lower lunge lure mail
mandate map march mark market marvel mask massacre massage master match mate matter mature mean
measure mention mentor merit microwave mind mine mirror miss mistake misuse mix moan model moderate
monitor mop mount mouth move mug murder muse muster nail name nap narrow near need nest net network
note notice number nurse object offer offset open orbit order outfit outlaw outline outrage
overhaul overlap overload own pack paddle page paint pan panic parade parallel pardon park parody
pass paste pat patch patent patrol pause peak pedal peel peer perfect pet petition phone photograph
pick picket picture pile pilot pin pioneer pipe pitch place plague plan plant plaster plateau play
pledge plot plough plow plug plunge pocket point poison poke police polish poll pop pose post pot
pound pour power practice praise present press pressure prey price prick prime print probe process
produce profit program progress project promise prompt protest puff pull pump punch purchase purge
push puzzle quarrel question quit quiz quote race raft rage raid rain raise rake rally ram range
rank rap rape rate rattle reach rear reason rebel rebound record recruit reel reform refund refuse
regard register regret reign relapse relay release remake remark remedy rent repair repeat replay
reply report reprint reprise request rescue research reserve resort rest result retort retreat
return reverse review revolt reward ride ring rip rise rival roar roast rock roll root round rout
route row rub ruin rule rumble run rush sack saddle sail salute sample sanction saw scale scan
scare schedule scoop score scout scramble scrap scratch scream screen screw scrub seal search seat
sense sentence separate set shadow shake shame shape share shed shelter shield shift shine ship
shock shoot shop shoulder shout shovel show shower shred shrug shuttle siege sigh sign signal
silence single sink sip sit size skate skateboard sketch ski skid skip skirt slack slam slap slash
slate slaughter sled sleep slice slide slim slip slow slump slur smack smash smell smile smoke snap
sneeze snow snub soak soldier sort sound sow span spar spare spark speed spell spike spill spin
spiral spit splash split sponsor spot spray spread spring sprint sprout spur spy squash squat
squeak squeeze stab stack staff stage stake stall stamp stampede stand staple star stare start
state station stay steady steam stem step stick sting stir stitch stock stop store storm strain
strand strap stray streak stream stress stretch stride strike string strip stroke stroll struggle
stub study stuff stumble stunt subordinate substitute suit sum supplement supply support surf surge
surprise survey suspect swap swarm sway sweat sweep swell swim swing switch tackle tag tail talk
tap tape target taste tattoo tax tear tease telephone test text thaw thrill throng throw thrust
thump thunder tick tickle tie tilt time tip tire title toast top torch torment torture toss total
touch tour tow tower toy trace track trade trail train transfer transplant transport trap trash
travel tread treasure treat trek trick trickle trigger trim triumph trouble trump trumpet trust try
tuck tug tumble turn tutor twist type up update upgrade upset urge use value vault veil vent
venture veto vie view visit voice volunteer vote vow wage wager wait wake walk warrant waste watch
water wave weather wed weed weld wheel whip whirl whisk whisper whistle win wind wink wipe wire
wish witness wonder work worry worship wound wrap wreck yawn yell yield zip zoom
"""
"""Verbs whose base form is a common noun or adjective as well, and whose form in -s a plural."""
NOUNS_FIRST = """
answer attack ban bank bar block board bomb bond book border box brand break brush budget burn bus
call camp campaign care cause center centre challenge change channel charge chart check clash click
clip cloud coach coat code coin comment commission concern contact contest contract control copy
cost count counter couple court cover crack crash crop crowd crown cruise curve cut cycle damage
dance date deal delegate demand deposit design desire detail display dispute document doubt draft
dream dress drink drive drop edge escape estimate exchange exercise exhibit exit exploit export eye
face fan farm fault favor fear feature feed fight figure file film finger finish fire fish flag
force form fund gain grade grant ground group guard guess guide hand head host house import
increase interview issue jail judge label land lead level light limit line link list loan lock look
map mark market match mate matter measure mine model monitor mouth name need nest net note number
nurse object offer order outline page paint parade park pass peak phone photograph picture pilot
pipe place plan plant play plot pocket point police poll post pound power practice present press
price process produce profit program progress project protest purchase question race raid rank rate
reason rebel record recruit reform regard remark rent repair report request research reserve resort
rest result review reward ring rival rock roll root round route rule sail sample sanction scale
score scream screen seal seat sense sentence set shape share shelter shift ship shop show sign
signal size sketch ski smile snow soldier sort sound span spot staff stage stamp star state step
stick stock store storm strain stream stress strike strip struggle study stuff suit supply support
surprise survey suspect swing switch talk tape target tax tear test text tie time top total touch
tour tower toy track trade trail train trap travel trick trouble type update upgrade use value
venture view visit voice vote wage watch wave wheel wind witness work worry wound wreck
"""
"""Those of them whose form in -s is a plural more often than a verb."""
